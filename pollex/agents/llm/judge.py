"""The judge on a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

from pollex.agents.llm.asker import Asker, Role
from pollex.agents.llm.attention_checks import straight_lined, suspect
from pollex.agents.llm.batched import Batched
from pollex.agents.llm.independent import Independent
from pollex.agents.llm.sampling import again, sampled
from pollex.agents.roles import Judge, no_answers
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.judge_settings import JUDGMENTS

Answers = list[Answer | Unanswered]
Elicitation = Batched | Independent
ELICITATIONS: dict[str, type[Elicitation]] = {"batched": Batched, "independent": Independent}


class LlmJudge(Role, Judge):
    """Answers questions about conversations, as distributions where the endpoint lets it.

    Args:
        elicitation: How they are asked; None for what the settings say.

    Raises:
        ModelRefused: Log-probabilities are required, and the endpoint gives none.
    """

    def __init__(self, asker: Asker, elicitation: Elicitation | None = None) -> None:
        self.elicitation = elicitation or ELICITATIONS[asker.settings.elicitation](asker)
        super().__init__(asker, [self.elicitation.prompt], **asker.settings.facts(JUDGMENTS))
        self.replicates = asker.replicates

    @property
    def tally(self) -> Counter[str]:
        """Corrections and omissions so far, by cause."""
        return self.elicitation.tally

    def again(self, replicate: int) -> Self:
        """See `agents.ensemble.Repeatable`."""
        return type(self)(again(self.asker, replicate, self.replicates))

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Answer each question, in order; make no call for an unscorable conversation."""
        if why := conversation.not_scorable:
            return no_answers(questions, "not_scorable", why, self.elicitation.judge)
        return await sampled(questions, self.replicates, lambda r: self._sample(conversation, questions, r))

    async def _sample(self, conversation: Conversation, questions: Sequence[Question], replicate: int) -> Answers:
        answers = await self.elicitation.answers(conversation, questions, replicate)
        why = straight_lined(questions, answers) if self.asker.settings.straight_lining else ""
        if not why:
            return answers
        self.tally["straight-lined"] += 1
        return suspect(answers, why)
