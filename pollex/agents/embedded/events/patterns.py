"""Patterns, the rows of `patterns.toml`: an act, a circumstance and a reaction within one quote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pollex.agents.embedded.events.sentences import ConversationMove, Sentence, read_table_rows
from pollex.rubrics.rubric import WhatRubricTells

ActingParty = Literal["assistant", "user", "both"]


@dataclass(frozen=True, slots=True)
class EventPattern:
    """An event, whatever its object; `patterns.toml` says what its fields are.

    Attributes:
        group: Name of the function of `finders` that finds it.
    """

    group: str
    name: str
    who: ActingParty
    side: int
    text: str
    rate: bool = False
    within: str = ""
    proven: bool = True
    anywhere: str = ""
    tells: WhatRubricTells = ""

    @property
    def kind(self) -> WhatRubricTells:
        """What it tells of: unless the row says so, what the assistant does alone is a deed, else an outcome."""
        if self.tells:
            return self.tells
        if self.who == "assistant" and not self.rate:
            return "deed"
        return "outcome"


PATTERNS_BY_NAME = {
    name: EventPattern(group, name, **row)
    for group, name, row in read_table_rows(Path(__file__).with_name("patterns.toml"))
}


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters of a turn's text, from `start` up to `end`."""

    turn: int
    start: int
    end: int

    @classmethod
    def of(cls, sentence: Sentence) -> TextSpan:
        """Return the span of a whole sentence."""
        return cls(sentence.turn, sentence.start, sentence.end)


@dataclass(frozen=True, slots=True)
class PatternFiring:
    """A pattern seen in a conversation.

    Attributes:
        sure: From 0 to 1: the least sure of the acts that it rests on.
        quote: The deciding sentences.
        marks: The words that decided.
        move: Index of the deciding move.
    """

    pattern: str
    sure: float
    quote: TextSpan
    marks: tuple[TextSpan, ...]
    move: int
    detail: str = ""


@dataclass(slots=True)
class Exchange:
    """A move of the assistant with its neighboring moves.

    Attributes:
        index: Index of the assistant's move.
        user: The user's move before.
        earlier: The assistant's move before that.
        after: The user's move that follows.
        opening: Whether `user` is the first move of the conversation.
    """

    moves: Sequence[ConversationMove]
    index: int
    here: ConversationMove
    user: ConversationMove | None
    earlier: ConversationMove | None
    after: ConversationMove | None
    opening: bool

    def fire(
        self,
        pattern: str,
        *deciding: tuple[ConversationMove, str],
        detail: str = "",
        sure: float = 1.0,
    ) -> PatternFiring:
        """Make a firing from acts of moves, and quote the first of them."""
        # a firing is as sure as the least sure of its acts
        spans = []
        least = sure
        for move, act in deciding:
            sentence = move.acts[act]
            hit = sentence.hits[act]
            least = min(least, hit.sure)
            spans.append(TextSpan(sentence.turn, hit.start, hit.end))

        move, act = deciding[0]
        # the quote stays in the move of the first act; what others did is marked only
        quoted = []
        for acting_move, other in deciding:
            if acting_move is move:
                quoted.append(move.acts[other])

        return PatternFiring(
            pattern,
            least,
            span_sentences(quoted),
            tuple(spans),
            self.index_of(move),
            detail,
        )

    def fire_at(
        self,
        pattern: str,
        move: ConversationMove,
        sentences: Sequence[Sentence],
        sure: float,
        marks: tuple[TextSpan, ...] = (),
        detail: str = "",
    ) -> PatternFiring:
        """Make a firing from structure: quote the sentences, and mark `marks` or all of them."""
        spans = marks or tuple(map(TextSpan.of, sentences[:2]))
        return PatternFiring(
            pattern,
            sure,
            span_sentences(sentences),
            spans,
            self.index_of(move),
            detail,
        )

    def index_of(self, move: ConversationMove) -> int:
        """Return the index of one of the exchange's moves."""
        # what is none of the three is the assistant's earlier move, two before this one
        return self.index + (
            1 if move is self.after else 0 if move is self.here else -1 if move is self.user else -2
        )


def span_sentences(sentences: Sequence[Sentence]) -> TextSpan:
    """Return the span from the first to the last sentence within the first one's turn."""
    first = min(sentences, key=lambda sentence: (sentence.turn, sentence.start))
    # a quote lies in one turn: sentences of later ones are left out
    same = []
    for sentence in sentences:
        if sentence.turn == first.turn:
            same.append(sentence)

    return TextSpan(first.turn, first.start, max(sentence.end for sentence in same))


def iterate_exchanges(moves: Sequence[ConversationMove]) -> Iterator[Exchange]:
    """Yield each move of the assistant with its neighboring moves."""
    for index, move in enumerate(moves):
        if move.role == "assistant":
            yield Exchange(
                moves=moves,
                index=index,
                here=move,
                user=moves[index - 1] if index else None,
                earlier=moves[index - 2] if index > 1 else None,
                after=moves[index + 1] if index + 1 < len(moves) else None,
                opening=index == 1,
            )
