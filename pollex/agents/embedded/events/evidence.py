"""Quotes that support an event: the deciding sentences, with the deciding words marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pollex.agents.embedded.events.patterns.pattern import Firing
from pollex.agents.embedded.events.reading import Event, Reading
from pollex.agents.embedded.events.topics import Topics
from pollex.rubrics.rubric import Quote

MOST = 3
SURE = 0.8
"""A less sure quote proves nothing to a reader."""

IN_WINDOW, IN_QUOTE, ON_SIDE, LENGTHY, FEW_WORDS = 0.15, 0.05, 0.1, 0.0002, 0.1
SHORT = 4


class Evidence(NamedTuple):
    """A quote of an event.

    Attributes:
        worth: Its rank among others.
        named: Whether an object of the rubric is named within two turns before and one after.
        sure: Of the detector, from 0 to 1.
    """

    worth: float
    quote: Quote
    named: bool
    sure: float


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
        own = [_quoted(reading, firing, named, topics) for firing in reading.seen.get(event, ())]
        if own:
            best = max(own, key=lambda one: one.worth)
            bonus = ON_SIDE if side is not None and side[row] else 0.0
            ranked.append(best._replace(worth=best.worth + bonus))
    return sorted(ranked, key=lambda one: (-one.worth, one.quote.conversation_id))


def _quoted(reading: Reading, firing: Firing, named: Sequence[int], topics: Topics) -> Evidence:
    span = firing.quote
    text = reading.conversation.turns[span.turn].part(span.start, span.end)
    window = reading.moves[max(0, firing.move - 2) : firing.move + 2]
    here = not named or (reading.topics[firing.move] in named and topics.named(window, named))
    own = topics.named([reading.moves[firing.move]], named)
    worth = firing.sure + IN_WINDOW * here + IN_QUOTE * own - LENGTHY * len(text)
    worth -= FEW_WORDS * (len(text.split()) < SHORT)
    if named and reading.topics[firing.move] not in named:
        worth -= 1
    inside = (mark for mark in firing.marks if mark.turn == span.turn and span.start <= mark.start < span.end)
    marks = sorted({(mark.start - span.start, min(mark.end, span.end) - span.start) for mark in inside})
    quote = Quote(
        conversation_id=reading.conversation.id, turn=span.turn, text=text, marks=tuple(marks), sure=firing.sure
    )
    return Evidence(worth, quote, here, firing.sure)
