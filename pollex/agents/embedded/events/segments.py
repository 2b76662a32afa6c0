"""Topics of a log that go better or worse than the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.events.language import ENGLISH, language_of
from pollex.agents.embedded.events.reading import Reading, marked, read
from pollex.agents.embedded.events.topics import Topics, learn_topics, plural
from pollex.conversations.conversation import Conversation, Label
from pollex.rubrics.records import Segment
from pollex.rubrics.worth import share_of

Bools = npt.NDArray[np.bool_]

EXAMPLES = 3
FEWEST = 5


def segments_of(training: Sequence[Conversation], told: Sequence[Conversation]) -> tuple[Segment, ...]:
    """Compute segments of labeled conversations by learned topics; none if the log isn't in English."""
    if not told or language_of(training) != ENGLISH:
        return ()
    topics = learn_topics([marked(conversation) for conversation in training])
    up = np.array([conversation.label is Label.POSITIVE for conversation in told], dtype=bool)
    return tuple(segments([read(conversation, topics) for conversation in told], topics, up))


def segments(readings: Sequence[Reading], topics: Topics, up: Bools) -> list[Segment]:
    """Rank topics by how much their share of thumbs down differs from the rest."""
    found = []
    about = topic_table(readings, len(topics.topics))
    for index, topic in enumerate(topics.topics):
        rows = about[:, index]
        if rows.sum() < FEWEST:
            continue
        order = sorted(map(int, np.flatnonzero(rows)), key=lambda row: (up[row], row))
        found.append(
            Segment(
                topic=plural(topic.name),
                down=share_of(int((rows & ~up).sum()), int(rows.sum())),
                rest=share_of(int((~rows & ~up).sum()), int((~rows).sum())),
                examples=tuple(readings[row].conversation.id for row in order[:EXAMPLES]),
            )
        )
    return sorted(found, key=lambda one: -unlikeness(one))


def unlikeness(segment: Segment) -> float:
    """Return z of the difference between a segment's share and the rest's; 0 if undefined."""
    a, b = segment.down, segment.rest
    if a.value is None or b.value is None:
        return 0.0
    pooled = (a.value * a.n + b.value * b.n) / (a.n + b.n)
    spread = np.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / a.n + 1 / b.n))
    return abs(float((a.value - b.value) / spread))


def topic_table(readings: Sequence[Reading], count: int) -> Bools:
    """Tabulate which conversations are about which topics, [conversation, topic]."""
    table = np.zeros((len(readings), count), dtype=bool)
    for row, reading in enumerate(readings):
        for topic in set(reading.topics):
            if topic >= 0:
                table[row, topic] = True
    return table
