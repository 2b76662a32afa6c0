"""Learn the events of a log from labelled conversations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.events.evidence import MOST, SURE, Evidence, evidence
from pollex.agents.embedded.events.patterns import PATTERNS
from pollex.agents.embedded.events.reading import Event, EventRubric, Reading
from pollex.agents.embedded.events.segments import topic_table
from pollex.agents.embedded.events.selection import Found, candidates, chosen
from pollex.agents.embedded.events.topics import Topics
from pollex.agents.embedded.events.wording import named_topics, sayable, sentence, told_of

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

BUDGET = (10, 10)
RATES = (4, 4)
"""Successes that are only successes: they count for the score, and are no rubrics to act on."""
FILL = 0.15
"""Events beyond the bounded rate may fill the budget up to this p: they count, and are not headlined."""
SURE_QUOTES = 2


def fit(
    readings: Sequence[Reading],
    up: Bools,
    topics: Topics,
    rng: np.random.Generator,
    budget: tuple[int, int] = BUDGET,
) -> list[EventRubric]:
    """Choose events, and put them into words with their quotes."""
    events = sorted({event for reading in readings for event in reading.seen})
    sure = np.array([[reading.sure(event) for event in events] for reading in readings]).reshape(len(up), len(events))
    found = candidates(
        events,
        sure > 0,
        topic_table(readings, len(topics.topics)),
        up,
        rng,
        lambda event: sayable(event, topics),
    )
    pool = [f for f in found if (f.within_bound or (f.p < FILL and f.expected)) and (f.both_halves or f.expected)]
    rates = {f.column for f in pool if PATTERNS[events[f.column].pattern].rate}
    best = chosen(events, sure, up, [f for f in pool if f.column not in rates], budget)
    best += chosen(events, sure, up, [f for f in pool if f.column in rates], RATES, known=best)
    return [rubric_of(events[f.column], f, readings, up, topics) for f in best]


def rubric_of(event: Event, found: Found, readings: Sequence[Reading], up: Bools, topics: Topics) -> EventRubric:
    """Make a rubric from a chosen event."""
    firings = [(reading.topics[f.move], f.detail) for reading in readings for f in reading.seen.get(event, ())]
    named = named_topics(event, topics, [topic for topic, _ in firings])
    told = [told_of(reading, firing, topics) for reading in readings for firing in reading.seen.get(event, ())]
    good = found.side > 0
    quotes = evidence(event, readings, named, topics, [bool(label) == good for label in up])[:MOST]
    return EventRubric(
        event=event,
        text=sentence(event, topics, told, [detail for _, detail in firings]),
        polarity="sat" if good else "dsat",
        named=tuple(named),
        headline=leads(event, found, quotes),
        quotes=tuple(one.quote for one in quotes),
    )


def leads(event: Event, found: Found, quotes: Sequence[Evidence]) -> bool:
    """Return whether a rubric may be shown first: proven pattern, sure quotes, stable difference."""
    pattern = PATTERNS[event.pattern]
    sure = sum(one.sure >= SURE and one.named for one in quotes) >= SURE_QUOTES
    telling = found.expected and (found.within_bound or pattern.side != 0)
    return pattern.proven and sure and telling and not pattern.rate and found.both_halves
