"""The definition of a signal, and measures of a conversation from marks on its turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import copysign, log1p
from typing import Literal

import numpy as np

from pollex.agents.embedded.view import Floats, Indices, View

Party = Literal["user", "assistant", "both"]
_CLASSES = re.compile(r"\\[A-Z]")
MEASURES = ("share", "amount", "ending", "trend")


@dataclass(frozen=True)
class Signal:
    """Something visible in single turns that may speak for or against a conversation.

    Attributes:
        name: Stored in rubric sets; never renamed.
        party: Whose turns carry the mark.
        statement: What is asserted where the signal is strong; one sentence with one verb.
        marks: How strongly each turn carries the signal: [turn] for all turns, 0 where it doesn't.
        lean: What is known of it in general: +1 good, −1 bad, 0 it depends.
        vectors: Whether marks are read from embeddings.
        pattern: What is looked for in a turn, where the signal is that simple; quotes then show it.
    """

    name: str
    party: Party
    statement: str
    marks: Callable[[View], Floats]
    lean: int = 0
    pattern: re.Pattern[str] | None = None
    vectors: bool = False


def words(name: str, party: Party, statement: str, pattern: str, lean: int = 0, holds: str = "") -> Signal:
    """Make a signal for turns that match `pattern` (ignoring case).

    Only runs of word characters may repeat without bound in a pattern: anything else can take time that grows with the
    square of a turn's length.

    Args:
        holds: In lower case, what a turn that matches holds: most turns don't, and that is found out quickly.
    """
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    # Half as long on lower case, which for ASCII is the same.
    quick = re.compile(pattern, re.MULTILINE) if _CLASSES.sub("", pattern).islower() else None
    search = quick.search if quick else compiled.search

    def marks(view: View) -> Floats:
        out: Floats | None = None
        lowered: list[str | None] = view.lowered if quick else [None] * len(view.texts)
        for turn in view.places(party):
            low = lowered[turn]
            if low is None:
                found = compiled.search(view.texts[turn])
            elif holds in low:
                found = search(low)
            else:
                continue
            if found is not None:
                out = np.zeros(len(view.texts)) if out is None else out
                out[turn] = 1.0
        return view.silent if out is None else out

    return Signal(name, party, statement, marks, lean, compiled)


def measured(marks: Floats, turns: Indices) -> Floats:
    """Summarize the marks of one party's turns in four numbers, [4]: see `MEASURES`.

    share: mean over the turns. amount: log(1 + sum), with the sum's sign. ending: the highest of the last two turns.
    trend: mean of the last third minus mean of the first. All are 0 for a party without turns.
    """
    return np.array(summary(marks[turns].tolist()))


def summary(x: Sequence[float]) -> tuple[float, float, float, float]:
    """Summarize a party's marks, in order; see `measured`."""
    if not x:
        return 0.0, 0.0, 0.0, 0.0
    third = max(1, round(len(x) / 3))
    total = sum(x)
    return (
        total / len(x),
        copysign(log1p(abs(total)), total) if total else 0.0,
        max(x[-2:]),
        (sum(x[-third:]) - sum(x[:third])) / third,
    )
