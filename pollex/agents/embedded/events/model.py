"""The learned event model of a log: rubrics, sentences, quotes, and answers for new conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.events.evidence import Evidence, evidence
from pollex.agents.embedded.events.reading import ANYWHERE, Event, Reading, read
from pollex.agents.embedded.events.topics import Topics
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import Polarity

Floats = npt.NDArray[np.float64]
FORMAT = 1


@dataclass(frozen=True)
class EventRubric:
    """An event that became a rubric.

    Attributes:
        text: In plain words.
        who: Whose doing it is: `assistant`, `user` or `both`.
        named: Topics that the sentence names.
        weight: Of the sureness in the log-odds of a thumb up.
        headline: Whether it leads: unmistakable quotes, proven detectors, something to act on.
        unexpected: Whether its side isn't the one that the event suggests.
        within_bound: Whether it stands within the bounded false discovery rate.
        quotes: The best first.
    """

    event: Event
    text: str
    polarity: Polarity
    who: str
    named: tuple[int, ...]
    weight: float
    headline: bool
    unexpected: bool
    within_bound: bool
    p: float
    quotes: tuple[Evidence, ...]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "event": asdict(self.event), "quotes": [quote.to_json() for quote in self.quotes]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> EventRubric:
        return cls(
            **{
                **stored,
                "event": Event(**stored["event"]),
                "named": tuple(stored["named"]),
                "quotes": tuple(Evidence.from_json(quote) for quote in stored["quotes"]),
            }
        )


@dataclass(frozen=True)
class Answers:
    """Events found in conversations.

    Attributes:
        sure: Probability that a rubric's event happened, [conversation, rubric].
        evidence: The best quote of each, [conversation][rubric]; None where it didn't happen.
    """

    sure: Floats
    evidence: tuple[tuple[Evidence | None, ...], ...]


@dataclass(frozen=True)
class EventModel:
    """Rubrics of a log's events.

    Attributes:
        rubrics: The strongest first.
        left_out: Why there are none, where detectors don't apply; empty otherwise.
    """

    topics: Topics
    rubrics: tuple[EventRubric, ...]
    intercept: float = 0.0
    left_out: str = ""

    def answers(self, conversations: Iterable[Conversation]) -> Answers:
        """Read conversations and answer all rubrics."""
        return self.answers_of([self.read(conversation) for conversation in conversations])

    def answers_of(self, readings: Sequence[Reading]) -> Answers:
        """Answer all rubrics about conversations that were read."""
        found = tuple(tuple(self._evidence(reading, rubric) for rubric in self.rubrics) for reading in readings)
        return Answers(self.sure(readings), found)

    def sure(self, readings: Sequence[Reading]) -> Floats:
        """Probability that each event happened, [conversation, rubric]."""
        rows = [[reading.sure(rubric.event) for rubric in self.rubrics] for reading in readings]
        return np.array(rows, dtype=np.float64).reshape(len(readings), len(self.rubrics))

    def score(self, sure: Floats) -> Floats:
        """Return the log-odds of a thumb up [conversation] by these rubrics alone."""
        return np.asarray(sure @ np.array([rubric.weight for rubric in self.rubrics]) + self.intercept)

    def read(self, conversation: Conversation) -> Reading:
        """Read one conversation by the topics of this log."""
        return read(conversation, self.topics)

    def _evidence(self, reading: Reading, rubric: EventRubric) -> Evidence | None:
        if rubric.event not in reading.seen:
            return None
        return next(iter(evidence(rubric.event, [reading], rubric.named, self.topics)), None)

    def to_json(self) -> dict[str, Any]:
        """Return the model as JSON values."""
        return {
            "format": FORMAT,
            "topics": self.topics.to_json(),
            "rubrics": [rubric.to_json() for rubric in self.rubrics],
            "intercept": self.intercept,
            "left_out": self.left_out,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> EventModel:
        """Rebuild a model from the JSON values of `to_json`."""
        return cls(
            Topics.from_json(stored["topics"]),
            tuple(EventRubric.from_json(one) for one in stored["rubrics"]),
            stored["intercept"],
            stored["left_out"],
        )


__all__ = ["ANYWHERE", "Answers", "EventModel", "EventRubric"]
