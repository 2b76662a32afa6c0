"""Columns of records as arrays: numbers, codes, groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pollex.calibration.questionnaire import Bools, Floats, Ints
from pollex.calibration.tables.faults import Fault, told
from pollex.calibration.tables.shape import Records


def numbers(values: Sequence[Any]) -> Floats:
    """Values as numbers `[record]`; NaN where one is none, infinite, or true or false."""
    out = np.array([_number(value) for value in values], dtype=np.float64)
    out[np.isinf(out)] = np.nan
    return out


def _number(value: Any) -> float:
    if isinstance(value, (bool, type(None))):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def codes(names: Sequence[str], known: Sequence[str]) -> Ints:
    """Places of names among those known `[name]`; −1 where unknown."""
    places = {each: place for place, each in enumerate(known)}
    return np.array([places.get(each, -1) for each in names], dtype=np.int64)


def groups_of(records: Records, texts: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[Fault]]:
    """By column, the group of each text, and the texts that have two in one column: these get the first."""
    found: dict[str, tuple[str, ...]] = {}
    faults: list[Fault] = []
    row_text: dict[int, str] = dict(zip(records.row, records.text, strict=True))
    for column, values in records.groups.items():
        of_text: dict[str, str] = {}
        pairs = {(text, values[row]) for row, text in row_text.items() if values[row]}
        for row, text in row_text.items():
            if values[row]:
                of_text.setdefault(text, values[row])
        if of_text:
            found[column] = tuple(of_text.get(text, "") for text in texts)
        several = sorted(text for text, value in pairs if value != of_text[text])
        faults += told(
            "text", f"with two values of {column!r}: used with the first", dict.fromkeys(several), left_out=False
        )
    return found, faults


def naturally(name: str) -> list[tuple[int, str, str]]:
    """Sorts Q2 before Q10; a number as long as it may be, by its digits."""
    parts = enumerate(re.split(r"(\d+)", name))
    return [(len(digits := part.lstrip("0")), digits, part) if n % 2 else (-1, part, "") for n, part in parts]


def first_of_each(keys: Ints) -> Bools:
    """Which stand there for the first time `[record]`."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first
