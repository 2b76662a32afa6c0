"""Which folder the store is, and how a command that is told to people names it."""

from __future__ import annotations

import shlex
from pathlib import Path

STORE = ".pollex"
"""Where commands look when no store is named."""


def kept_in(folder: str | Path) -> str:
    """What a command needs behind it to find this store: nothing where it is the usual one."""
    return "" if str(folder) == STORE else f" --store {shlex.quote(str(folder))}"
