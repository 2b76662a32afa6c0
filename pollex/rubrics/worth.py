"""What rubrics are worth in words that a product manager reads, on conversations that they were not learned from.

Intervals: Wilson 1927, doi:10.1080/01621459.1927.10502953.
"""

from __future__ import annotations

from pollex.measures.arrays import Bools
from pollex.measures.intervals import Figure
from pollex.measures.reliability import wilson
from pollex.rubrics.records import Worth


def share_of(hits: int, n: int) -> Figure:
    """A share of n conversations with its 95 % interval."""
    if not n:
        return Figure(None, undefined="there is no such conversation")
    low, high = wilson(hits / n, n)
    return Figure(hits / n, float(low), float(high), n)


def worth_of(held: Bools, up: Bools) -> Worth:
    """The worth of one rubric from whether it held and the thumb, each [conversation]."""
    return Worth(
        holds=share_of(int(held.sum()), len(held)),
        down_with=share_of(int((held & ~up).sum()), int(held.sum())),
        down_without=share_of(int((~held & ~up).sum()), int((~held).sum())),
    )
