"""Which folder the store is, and how a command that is told to people names it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

STORE = ".pollex"
"""Where commands look when no store is named."""

VARIABLE = "POLLEX_STORE"
"""Of the environment: names another folder to look in."""


def store_option(folder: str | Path) -> str:
    """What a command needs behind it to find this store: nothing where it would look there anyway."""
    usual = os.environ.get(VARIABLE) or STORE
    return "" if str(folder) == usual else f" --store {shlex.quote(str(folder))}"
