"""What a rubric is worth on conversations that it was not learnt from, and which topics go well or badly.

Intervals: Wilson 1927, doi:10.1080/01621459.1927.10502953.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.events.reading import Reading
from pollex.agents.embedded.events.topics import Topics, plural

Bools = npt.NDArray[np.bool_]

Z = 1.959963984540054
EXAMPLES = 3
FEWEST = 5


@dataclass(frozen=True)
class Share:
    """A share with its 95 % Wilson interval, of `n` conversations.

    Attributes:
        value: None where n is 0.
    """

    value: float | None
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Worth:
    """How often an event happens, and thumbs down where it does and where it doesn't."""

    holds: Share
    down_with: Share
    down_without: Share


@dataclass(frozen=True)
class Segment:
    """Conversations on one topic.

    Attributes:
        examples: Ids of three of them, thumbs down first.
    """

    topic: str
    down: Share
    rest: Share
    examples: tuple[str, ...]


def share(hits: int, n: int) -> Share:
    """A share with its interval."""
    if not n:
        return Share(None, 0.0, 1.0, 0)
    p = hits / n
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * float(np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)))
    return Share(p, max(0.0, middle - half), min(1.0, middle + half), n)


def worth(held: Bools, up: Bools) -> Worth:
    """The worth of one event from whether it happened and the thumb, each [conversation]."""
    return Worth(
        share(int(held.sum()), len(held)),
        share(int((held & ~up).sum()), int(held.sum())),
        share(int((~held & ~up).sum()), int((~held).sum())),
    )


def segments(readings: Sequence[Reading], topics: Topics, up: Bools) -> list[Segment]:
    """Topics by how unlike the rest their share of thumbs down is, the least like first."""
    found = []
    about = topic_table(readings, len(topics.topics))
    for index, topic in enumerate(topics.topics):
        rows = about[:, index]
        if rows.sum() < FEWEST:
            continue
        order = sorted(np.flatnonzero(rows), key=lambda row: (up[row], row))
        examples = tuple(readings[row].conversation.id for row in map(int, order[:EXAMPLES]))
        with_, without = (
            share(int((rows & ~up).sum()), int(rows.sum())),
            share(int((~rows & ~up).sum()), int((~rows).sum())),
        )
        found.append(Segment(plural(topic.name), with_, without, examples))
    return sorted(found, key=lambda one: -unlikeness(one))


def unlikeness(segment: Segment) -> float:
    """z of the difference between a segment's share and the rest's; 0 where there is no rest."""
    a, b = segment.down, segment.rest
    if a.value is None or b.value is None:
        return 0.0
    pooled = (a.value * a.n + b.value * b.n) / (a.n + b.n)
    spread = np.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / a.n + 1 / b.n))
    return abs(float((a.value - b.value) / spread))


def topic_table(readings: Sequence[Reading], count: int) -> Bools:
    """Whether each conversation is about each topic, [conversation, topic]."""
    table = np.zeros((len(readings), count), dtype=bool)
    for row, reading in enumerate(readings):
        for topic in set(reading.topics):
            if topic >= 0:
                table[row, topic] = True
    return table
