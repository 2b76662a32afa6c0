"""What of a table could not be used, or is worth knowing: counted, with examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pollex.calibration.questionnaire import Bools, Ints

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
    def said(self) -> str:
        """What stands behind the count: `judges with one label only`."""
        several = f"{self.noun[:-1]}ies" if self.noun.endswith("y") else f"{self.noun}s"
        return f"{self.noun if self.count == 1 else several} {self.what}"

    def __str__(self) -> str:
        shown = "; ".join(self.examples)
        more = f"; and {self.count - len(self.examples)} more" if self.count > len(self.examples) else ""
        return (
            f"{self.count} {self.said}{f': {shown}{more}' if shown else ''}{f' → {self.remedy}' if self.remedy else ''}"
        )


def fault(
    noun: str,
    what: str,
    which: Bools | Ints,
    place: Callable[[int], str],
    remedy: str = "",
    *,
    left_out: bool = True,
) -> list[Fault]:
    """The fault of those that `which` picks, as a mask or as numbers; none where it picks none.

    Args:
        place: What to say of one of them; for `noun` and `what` see `Fault`.
    """
    numbers = np.flatnonzero(which) if which.dtype == bool else which
    if not len(numbers):
        return []
    examples = tuple(place(int(n)) for n in numbers[:EXAMPLES])
    return [Fault(noun, what, len(numbers), examples, remedy, left_out)]


def told(noun: str, what: str, names: Iterable[str], remedy: str = "", *, left_out: bool = True) -> list[Fault]:
    """The fault of things that have names; `noun` and `what` as for `fault`."""
    listed = list(names)
    return [Fault(noun, what, len(listed), tuple(listed[:EXAMPLES]), remedy, left_out)] if listed else []
