"""Quotes that support an event: the deciding sentences, with the deciding words marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pollex.agents.embedded.events.patterns.pattern import Firing, Span
from pollex.agents.embedded.events.reading import Event, Reading
from pollex.agents.embedded.events.topics import Topics

MOST = 3
IN_WINDOW, IN_QUOTE, ON_SIDE, LENGTHY, FEW_WORDS = 0.15, 0.05, 0.1, 0.0002, 0.1
SHORT = 4


@dataclass(frozen=True)
class Evidence:
    """One quote.

    Attributes:
        turn: Of the quote.
        text: The quote, verbatim.
        start: Of the quote in the turn's text.
        marks: The words that decided, in this or a neighboring turn.
        sure: Of the detector, from 0 to 1.
        named: Whether an object of the rubric is named within two turns before and one after.
    """

    conversation_id: str
    turn: int
    start: int
    end: int
    text: str
    marks: tuple[Span, ...]
    sure: float
    named: bool

    @property
    def marked(self) -> tuple[tuple[int, int], ...]:
        """The marks that stand in the quote, as positions in its text."""
        inside = (mark for mark in self.marks if mark.turn == self.turn and self.start <= mark.start < self.end)
        return tuple(sorted({(mark.start - self.start, min(mark.end, self.end) - self.start) for mark in inside}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Evidence:
        return cls(**{**stored, "marks": tuple(Span(**mark) for mark in stored["marks"])})


def evidence(
    event: Event, readings: Iterable[Reading], named: Sequence[int], topics: Topics, side: Sequence[bool] | None = None
) -> list[Evidence]:
    """Return the quotes of an event, the best first, one for each conversation.

    Args:
        named: Topics that the rubric's sentence names; empty where it names none.
        side: Whether each reading's label is on the rubric's side.
    """
    ranked = []
    for row, reading in enumerate(readings):
        own = [best_quote(reading, firing, named, topics) for firing in reading.seen.get(event, ())]
        if own:
            worth, quote = max(own, key=lambda pair: pair[0])
            bonus = ON_SIDE if side is not None and side[row] else 0.0
            ranked.append((worth + bonus, quote))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].conversation_id))
    return [quote for _, quote in ranked]


def best_quote(reading: Reading, firing: Firing, named: Sequence[int], topics: Topics) -> tuple[float, Evidence]:
    """Return a firing as a quote, with its rank."""
    span = firing.quote
    text = reading.conversation.turns[span.turn].part(span.start, span.end)
    first, last = max(0, firing.move - 2), firing.move + 2
    window = reading.moves[first:last]
    here = not named or (reading.topics[firing.move] in named and topics.named(window, named))
    own = topics.named([reading.moves[firing.move]], named)
    worth = firing.sure + IN_WINDOW * here + IN_QUOTE * own - LENGTHY * len(text)
    worth -= FEW_WORDS * (len(text.split()) < SHORT)
    if named and reading.topics[firing.move] not in named:
        worth -= 1
    found = Evidence(reading.conversation.id, span.turn, span.start, span.end, text, firing.marks, firing.sure, here)
    return worth, found
