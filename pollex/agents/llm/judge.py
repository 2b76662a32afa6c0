"""The judge on a model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from pollex.agents.llm.asker import Asker
from pollex.agents.llm.attention_checks import straight_lined, suspect
from pollex.agents.llm.batched import Batched
from pollex.agents.llm.independent import Independent
from pollex.agents.llm.sampling import again, pooled
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.judge_settings import JUDGMENTS
from pollex.rubrics.rubric import Rubric

Answers = list[Answer | Unanswered]
Elicitation = Batched | Independent
ELICITATIONS: dict[str, type[Elicitation]] = {"batched": Batched, "independent": Independent}


class LlmJudge:
    """Answers questions about conversations, as distributions where the endpoint lets it.

    Raises:
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
    """

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.elicitation: Elicitation = ELICITATIONS[asker.settings.elicitation](asker)
        self.replicates = asker.replicates

    @property
    def name(self) -> str:
        return self.asker.name

    @cached_property
    def fingerprint(self) -> str:
        return self.asker.fingerprint(self.elicitation.prompt, **self.asker.settings.facts(JUDGMENTS))

    @property
    def tally(self) -> Counter[str]:
        """Corrections and omissions so far, by cause."""
        return self.elicitation.tally

    @property
    def learned(self) -> Mapping[str, Any]:
        return {}

    def again(self, replicate: int) -> Self:
        """See `agents.ensemble.Repeatable`."""
        return type(self)(again(self.asker, replicate, self.replicates))

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Do nothing: a model answers on the scale in its prompt."""

    def understood(self, rubric: Rubric) -> Rubric:
        """Return the rubric itself: a model reads its text."""
        return rubric

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Do nothing: calls about different conversations share nothing."""

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Answer each question, in order; make no call for an unscorable conversation."""
        if why := conversation.not_scorable:
            return [self._unscorable(question, why) for question in questions]
        samples = await asyncio.gather(*(self._sample(conversation, questions, r) for r in range(self.replicates)))
        if self.replicates == 1:
            return samples[0]
        return [
            pooled(answers, len(q.options)) for q, answers in zip(questions, zip(*samples, strict=True), strict=True)
        ]

    async def _sample(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        answers = await self.elicitation.answers(conversation, questions, replicate)
        why = straight_lined(questions, answers) if self.asker.settings.straight_lining else ""
        if not why:
            return answers
        self.tally["straight-lined"] += 1
        return suspect(answers, why)

    def _unscorable(self, question: Question, why: str) -> Unanswered:
        judge = self.elicitation.judge
        return Unanswered(question_id=question.id, outcome="not_scorable", detail=why, judge=judge)
