"""A judge that gives the answers of an earlier run, and asks another judge only about the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric

KeptAnswers = Mapping[str, Mapping[str, Answer | Unanswered]]
"""Answers by hash of the text, and by question."""


@dataclass(frozen=True)
class KeptJudge:
    """Gives answers that are known, and asks for the others.

    Attributes:
        rest: Who answers what is not known; None where all is.
        learned: What the judge of the known answers learned.
    """

    name: str
    fingerprint: str
    answers: KeptAnswers
    rest: Judge | None
    learned: Mapping[str, Any]

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Let the other judge learn its scale."""
        if self.rest is not None:
            await self.rest.fit(training, rubrics)

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric as it is asked."""
        return rubric if self.rest is None else self.rest.understood(rubric)

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Prepare the other judge for the conversations to come."""
        if self.rest is not None:
            await self.rest.prepare(conversations)

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Answer each question, in the questions' order."""
        known = self.answers.get(conversation.text_hash, {})
        left = [question for question in questions if question.id not in known]
        new = await self.rest.judge(conversation, left) if left and self.rest else []
        found = {**known, **dict(zip([question.id for question in left], new, strict=True))}
        return [found[question.id] for question in questions]
