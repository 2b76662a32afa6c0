"""Cells of tables that a spreadsheet would run: guarded where we write them, and bare again where we read them."""

from __future__ import annotations

import re
from typing import Any

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""A cell that begins with one of these is run by spreadsheets, also behind white space and controls, and also as a
full-width form. Source: OWASP ASVS 1.2.10, OWASP "CSV Injection"."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
"""Nothing in it can be run; an id such as -2 stays what it is."""


def guarded(value: Any) -> Any:
    """A text cell that a spreadsheet would take for a formula, with an apostrophe before it; numbers as they are.

    One that reads like a guarded cell already gets another apostrophe: so `unguarded` gives back what there was.
    """
    return f"'{value}" if isinstance(value, str) and _is_run(value.lstrip("'")) else value


def unguarded(value: Any) -> Any:
    """A cell as it was before `guarded`: without an apostrophe that would have been put there; others as they are."""
    if isinstance(value, str) and value.startswith("'") and guarded(value[1:]) == value:
        return value[1:]
    return value


def _is_run(text: str) -> bool:
    if NUMBER.fullmatch(text):
        return False
    begins = text.lstrip("".join(map(chr, range(33))) + "\x7f\xa0\ufeff")
    return begins.startswith(FORMULA) or text[:1] in ("\t", "\r", "\n", "\0")
