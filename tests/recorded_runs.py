"""A judge that answers from a table."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Self

from pollex.agents.llm.sampling import make_point_distribution
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import make_content_id


class Recorded(Judge):
    """Answers from a table; what isn't in it is unanswered.

    Args:
        table: By conversation the answers of its runs in order, each the text of an option.
        name: Who gave them.
    """

    def __init__(self, table: Mapping[str, Sequence[str]], name: str = "recorded") -> None:
        self.table = table
        self._name = name
        self._replicate = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        rows = (
            f"{id_}\x1e{answer}"
            for id_, answers in sorted(self.table.items())
            for answer in answers
        )
        return make_content_id("recorded", self.name, *rows)

    def again(self, replicate: int) -> Self:
        """Return the recorded run with that number; see `rooms.judge.agents.votes.RepeatableJudge`."""
        other = copy(self)
        other._replicate = replicate
        return other

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Return the run's answer for every question that has it among its options."""
        runs = self.table.get(conversation.id, ())
        if self._replicate >= len(runs):
            detail = f"no run {self._replicate + 1} in the table"
            return make_unanswered_for_all(questions, "error", detail, self.name)
        return [self._answer(question, runs[self._replicate]) for question in questions]

    def _answer(self, question: Question, given: str) -> Answer | Unanswered:
        options = [option.text for option in question.options]
        if given not in options:
            detail = f"not an option: {given[:80]!r}"
            return Unanswered(
                question_id=question.id, outcome="unparsable", detail=detail, judge=self.name
            )
        chosen = options.index(given)
        return Answer(
            question_id=question.id,
            probabilities=make_point_distribution(chosen, len(options)),
            chosen=chosen,
            source="recorded",
            judge=self.name,
        )
