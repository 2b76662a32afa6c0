"""Foreign text that files, databases and requests take: without lone surrogates, which none of them can hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

SURROGATES = re.compile("[\ud800-\udfff]")


def writable(value: Any) -> Any:
    """The value with U+FFFD for every lone surrogate, in all that is in it."""
    if isinstance(value, str):
        return value if value.isascii() else SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {writable(name): writable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [writable(inner) for inner in value]
    return value


def is_text(name: str | Path) -> bool:
    """Whether a file's name is text; DuckDB opens no others. Old ones may hold bytes that are none in UTF-8."""
    return SURROGATES.search(str(name)) is None
