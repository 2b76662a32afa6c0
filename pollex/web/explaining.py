"""The explanation of a score: each answer's term, and the words behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.reports.transcript import MarkedTurn, marked_turns
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.netsat import value_of
from pollex.rubrics.rubric import Polarity, Reason, Rubric

Rule = Literal["auto", "expected", "mode"]
MIDDLE = 5.0
"""Value of an answer that neither agrees nor disagrees."""


@dataclass(frozen=True)
class Part:
    """One rubric's share of a NetSAT.

    Attributes:
        value: What the answer is worth, 0 … 10; None without an answer.
    """

    rubric: Rubric
    answer: Answer | Unanswered | None
    value: float | None

    @property
    def adds(self) -> float | None:
        """Change of NetSAT by this answer."""
        if self.value is None:
            return None
        return self.value if self.rubric.polarity == "sat" else -self.value

    @property
    def far(self) -> float:
        """Distance of the answer from the middle."""
        return -1.0 if self.value is None else abs(self.value - MIDDLE)


@dataclass(frozen=True)
class Sums:
    """A NetSAT taken apart.

    Attributes:
        parts: The farthest from the middle first.
    """

    parts: tuple[Part, ...]

    def of(self, polarity: Polarity) -> float:
        """Add up the values of one kind."""
        return sum(part.value for part in self.parts if part.value is not None and part.rubric.polarity == polarity)

    @property
    def netsat(self) -> float:
        """Sum of SAT terms minus the sum of DSAT terms."""
        return self.of("sat") - self.of("dsat")

    @property
    def unanswered(self) -> int:
        """Number of rubrics without an answer."""
        return sum(part.value is None for part in self.parts)


def explained(rubrics: Sequence[Rubric], answers: Mapping[str, Answer | Unanswered], rule: Rule = "auto") -> Sums:
    """Take a NetSAT apart into what each rubric adds."""
    parts = [_part(rubric, answers.get(rubric.id), rule) for rubric in rubrics]
    return Sums(tuple(sorted(parts, key=lambda part: -part.far)))


def _part(rubric: Rubric, answer: Answer | Unanswered | None, rule: Rule) -> Part:
    return Part(rubric, answer, value_of(answer, rule) if isinstance(answer, Answer) else None)


def read(
    conversation: Conversation, extraction: Extraction | Unanswered | None, rubrics: Sequence[Rubric]
) -> list[MarkedTurn]:
    """Mark in a conversation's turns what rubrics and reasons quote."""
    quotes: dict[int, list[tuple[str, Polarity]]] = defaultdict(list)
    reasons = extraction.reasons if isinstance(extraction, Extraction) else ()
    sources: tuple[Rubric | Reason, ...] = (*rubrics, *reasons)
    for source in sources:
        for quote in source.quotes:
            if quote.conversation_id == conversation.id:
                quotes[quote.turn].append((quote.text, source.polarity))
    return marked_turns(conversation.turns, quotes)
