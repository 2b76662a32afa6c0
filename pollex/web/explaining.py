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
        never: Whether its occasion never came up: `value` is then what the rubric is usually worth.
    """

    rubric: Rubric
    answer: Answer | Unanswered | None
    value: float | None
    never: bool = False

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
        """Add up the values of one kind, of what came up."""
        return sum(
            part.value
            for part in self.parts
            if part.value is not None and part.rubric.polarity == polarity and not part.never
        )

    @property
    def never(self) -> float:
        """What rubrics count whose occasion never came up."""
        return sum(part.adds for part in self.parts if part.never and part.adds is not None)

    @property
    def never_came_up(self) -> int:
        """How many rubrics' occasion never came up."""
        return sum(part.never for part in self.parts)

    @property
    def netsat(self) -> float:
        """Sum of SAT terms minus the sum of DSAT terms, with what never came up."""
        return self.of("sat") - self.of("dsat") + self.never

    @property
    def unanswered(self) -> int:
        """Number of rubrics without an answer."""
        return sum(part.value is None for part in self.parts)


def explained(
    rubrics: Sequence[Rubric],
    answers: Mapping[str, Answer | Unanswered],
    rule: Rule = "auto",
    never: Mapping[str, float] | None = None,
) -> Sums:
    """Take a NetSAT apart into what each rubric adds.

    Args:
        never: By rubric, what counts where its occasion never came up; the middle where none is known.
    """
    parts = [_part(rubric, answers.get(rubric.id), rule, (never or {}).get(rubric.id, MIDDLE)) for rubric in rubrics]
    return Sums(tuple(sorted(parts, key=lambda part: -part.far)))


def _part(rubric: Rubric, answer: Answer | Unanswered | None, rule: Rule, never: float) -> Part:
    if not isinstance(answer, Answer):
        return Part(rubric, answer, None)
    return Part(rubric, answer, value_of(answer, rule, never), answer.never_came_up)


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
