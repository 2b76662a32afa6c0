"""Answers that a model wrote to numbered questions, with words, turns and an option."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pollex.agents.llm.parsing import chosen, numbers, object_in
from pollex.agents.llm.sampling import point, unlisted
from pollex.gateway.json_in_text import CONFLICT, Block, value_spans
from pollex.gateway.logprobs import Tokens
from pollex.gateway.outcomes import Completed
from pollex.rubrics.answers import Answer, Question, Unanswered


@dataclass
class Sheet:
    """See the module.

    Attributes:
        spellings: Ways to write the options, each with all of them; an answer may be in any.
        unknown: Answers to numbers that were not asked.
    """

    block: Block | None
    spellings: Sequence[Sequence[str]]
    tokens: Tokens | None
    text: str
    unknown: int

    @classmethod
    def of(cls, outcome: Completed, spellings: Sequence[Sequence[str]], count: int) -> Sheet:
        """Parse a completed call.

        Args:
            spellings: As in the attributes.
            count: How many questions were asked.
        """
        block = object_in(outcome.text)
        asked = {str(i) for i in range(1, count + 1)}
        unknown = len(block.value.keys() - asked) if block else 0
        return cls(block, spellings, Tokens.of(outcome.logprobs, outcome.text), outcome.text, unknown)

    def __post_init__(self) -> None:
        self._spans = value_spans(self.text, self.block) if self.block and self.tokens else {}

    def entry(self, place: int) -> dict[str, Any]:
        """Return the entry at `place`, empty if it is unusable."""
        value = self.block.value.get(str(place)) if self.block else None
        return value if isinstance(value, dict) else {}

    def chosen(self, place: int) -> int | None:
        """Return the index of the option chosen at `place`."""
        match = self._match(place)
        return match[0] if match else None

    def missing(self, place: int) -> bool:
        """Return whether the question at `place` has no entry at all."""
        return self.block is None or str(place) not in self.block.value

    def fault(self, place: int) -> str:
        """Return why there is no answer at `place`."""
        if self.block is None:
            return "no JSON object in the answer"
        value = self.block.value.get(str(place))
        if value is CONFLICT:
            return "answered twice, and not alike"
        given = value.get("answer") if isinstance(value, dict) else None
        return "not answered" if given is None else f"not an option: {str(given)[:80]!r}"

    def probabilities(self, place: int) -> tuple[float, ...] | None:
        """Off the answer's tokens; None where the endpoint lists no alternatives to them."""
        if self.tokens is None:
            return None
        span, match = self._spans.get((str(place), "answer")), self._match(place)
        if span is None or match is None:
            return None
        written = [json.dumps(label, ensure_ascii=False)[1:-1] for label in match[1]]
        found = self.tokens.distribution(span[0], written)
        return found if found and any(found) else None

    def answer(
        self, place: int, question: Question, judge: str, *, require_logprobs: bool, turns: int = 0
    ) -> Answer | Unanswered:
        """Read the answer at `place`.

        Args:
            require_logprobs: Whether an answer without them is none.
            turns: How many turns there are to name.
        """
        option = self.chosen(place)
        if option is None:
            detail = self.fault(place)
            return Unanswered(question_id=question.id, outcome="unparsable", detail=detail, judge=judge)
        probabilities = self.probabilities(place)
        if probabilities is None and require_logprobs:
            return unlisted(question, judge)
        entry, options = self.entry(place), len(question.options)
        listed = (0.0,) * options if option == options else (probabilities or ())[:options]  # it never came up
        return Answer(
            question_id=question.id,
            probabilities=listed or point(option, options),
            chosen=option,
            source="logprobs" if probabilities else "point",
            justification=str(entry.get("why") or ""),
            turns=tuple(sorted(numbers(entry.get("turns"), range(turns)))),
            judge=judge,
        )

    def _match(self, place: int) -> tuple[int, Sequence[str]] | None:
        """Return the option chosen at `place`, and the spelling that names it."""
        answer = self.entry(place).get("answer")
        tried = ((chosen(answer, spelling), spelling) for spelling in self.spellings)
        return next(((option, spelling) for option, spelling in tried if option is not None), None)
