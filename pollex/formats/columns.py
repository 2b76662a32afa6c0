"""Columns of records as arrays: numbers, codes, groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.formats.answer_tables import Records
from pollex.measures.arrays import Bools, Floats, Ints


def numbers(values: Sequence[Any]) -> Floats:
    """Convert values to numbers `[record]`; NaN for others, infinite numbers, true and false."""
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
    """Return the index of each name among those known `[name]`; −1 if unknown."""
    places = {each: place for place, each in enumerate(known)}
    return np.array([places.get(each, -1) for each in names], dtype=np.int64)


def groups_of(records: Records, texts: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[Fault]]:
    """Return each text's group by column, and report texts with two groups in one column."""
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
        faults += faults_of(
            "text", f"with two values of {column!r}: used with the first", dict.fromkeys(several), left_out=False
        )
    return found, faults


def naturally(name: str) -> list[tuple[int, str, str]]:
    """Return a sort key that puts Q2 before Q10, for numbers of any length."""
    parts = enumerate(re.split(r"(\d+)", name))
    return [(len(digits := part.lstrip("0")), digits, part) if n % 2 else (-1, part, "") for n, part in parts]


def first_of_each(keys: Ints) -> Bools:
    """Return a mask of the first occurrence of each key `[record]`."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


EXAMPLES = 3


@dataclass(frozen=True)
class Fault:
    """One thing about a table.

    Attributes:
        noun: One of what it is about: `judge`.
        what: What they have in common, in words for one and for several: `with one label only`.
        count: How many records, answers, texts or judges it is about.
        examples: Where, the first few.
        remedy: What to do; empty where nothing needs to be done.
        left_out: Whether they were left out; else they were kept.
    """

    noun: str
    what: str
    count: int
    examples: tuple[str, ...] = ()
    remedy: str = ""
    left_out: bool = True

    @property
    def described(self) -> str:
        """Text after the count: `judges with one label only`."""
        several = f"{self.noun[:-1]}ies" if self.noun.endswith("y") else f"{self.noun}s"
        return f"{self.noun if self.count == 1 else several} {self.what}"

    def __str__(self) -> str:
        shown = "; ".join(self.examples)
        more = f"; and {self.count - len(self.examples)} more" if self.count > len(self.examples) else ""
        found, mend = f": {shown}{more}" if shown else "", f" → {self.remedy}" if self.remedy else ""
        return f"{self.count} {self.described}{found}{mend}"


def fault(
    noun: str,
    what: str,
    which: Bools | Ints,
    place: Callable[[int], str],
    remedy: str = "",
    *,
    left_out: bool = True,
) -> list[Fault]:
    """Return the issue of the items that `which` picks; none if it picks nothing.

    Args:
        place: What to say of one of them; for `noun` and `what` see `Fault`.
    """
    numbers = np.flatnonzero(which) if which.dtype == bool else which
    if not len(numbers):
        return []
    examples = tuple(place(int(n)) for n in numbers[:EXAMPLES])
    return [Fault(noun, what, len(numbers), examples, remedy, left_out)]


def faults_of(noun: str, what: str, names: Iterable[str], remedy: str = "", *, left_out: bool = True) -> list[Fault]:
    """Return the issue of named items; `noun` and `what` as for `fault`."""
    listed = list(names)
    return [Fault(noun, what, len(listed), tuple(listed[:EXAMPLES]), remedy, left_out)] if listed else []
