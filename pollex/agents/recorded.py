"""A judge whose answers were given before: from a table of runs, or by people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from pollex.agents.answers import Answer, Question, Unanswered
from pollex.agents.llm.sampling import point
from pollex.agents.rubrics import Rubric, content_id
from pollex.conversations.model import Conversation


class Recorded:
    """Answers from a table; what isn't in it is unanswered.

    Args:
        table: By conversation the answers of its runs in order, each the text of an option.
        name: Who gave them.
    """

    def __init__(self, table: Mapping[str, Sequence[str]], name: str = "recorded") -> None:
        self.table, self.name, self._replicate = table, name, 0

    @property
    def fingerprint(self) -> str:
        rows = (f"{id_}\x1e{answer}" for id_, answers in sorted(self.table.items()) for answer in answers)
        return content_id("recorded", self.name, *rows)

    @property
    def learned(self) -> Mapping[str, Any]:
        return {}

    def again(self, replicate: int) -> Self:
        """The run of that number; see `agents.ensemble.Repeatable`."""
        other = copy(self)
        other._replicate = replicate
        return other

    async def study(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Nothing: what was said was said."""

    def reworded(self, rubric: Rubric, written: str) -> Rubric:  # noqa: ARG002 - the contract of judges
        """The rubric itself."""
        return rubric

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Nothing."""

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """The run's answer, the same to every question that has it among its options."""
        runs = self.table.get(conversation.id, ())
        if self._replicate >= len(runs):
            detail = f"no run {self._replicate + 1} in the table"
            return [Unanswered(question_id=q.id, outcome="error", detail=detail, judge=self.name) for q in questions]
        return [self._answer(question, runs[self._replicate]) for question in questions]

    def _answer(self, question: Question, given: str) -> Answer | Unanswered:
        options = [option.text for option in question.options]
        if given not in options:
            detail = f"not an option: {given[:80]!r}"
            return Unanswered(question_id=question.id, outcome="unparsable", detail=detail, judge=self.name)
        chosen = options.index(given)
        return Answer(
            question_id=question.id,
            probabilities=point(chosen, len(options)),
            chosen=chosen,
            source="recorded",
            judge=self.name,
        )
