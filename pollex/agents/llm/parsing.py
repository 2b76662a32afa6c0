"""Parsing of what a model wrote into checked values."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pollex.gateway.json_in_text import Block, last_object

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def object_in(text: str) -> Block | None:
    """Parse the last complete JSON object in `text`, with texts that can be stored."""
    block = last_object(text)
    if block is None or not _SURROGATE.search(text):
        return block
    try:
        return Block(_storable(block.value), block.start, block.end)
    except RecursionError:
        return None


def option_named(answer: Any, options: Sequence[str]) -> int | None:
    """Return the index of the option that `answer` names, after NFKC and trimming."""
    if not isinstance(answer, str):
        return None
    return _places(tuple(options)).get(as_read(answer))


@lru_cache(maxsize=256)
def _places(options: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each option by its spelling as it is compared; of equal ones the first."""
    return {as_read(option): place for place, option in reversed(list(enumerate(options)))}


def as_read(option: str) -> str:
    """Normalize an option's spelling for comparison."""
    return unicodedata.normalize("NFKC", option).strip()


def numbers(value: Any, known: range) -> list[int]:
    """Return the distinct whole numbers in a list that are `known`, in its order; none for any other value."""
    found = value if isinstance(value, list) else []
    return list(dict.fromkeys(item for item in found if type(item) is int and item in known))


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; empty for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _storable(value: Any) -> Any:
    """Replace lone surrogates, which no store accepts, by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value
