"""Questions that need no judge: what is about the sources of a conversation that has none doesn't apply."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import RULE_ANSWER_SOURCE, Answer, Question, Unanswered

NO_SOURCES_JUSTIFICATION = "the assistant was shown no sources"


@dataclass(frozen=True)
class SourcelessRuleJudge(Judge):
    """Answers by rule that questions about sources don't apply where there are none, and has the others answered.

    Attributes:
        about_sources: Ids of questions about sources; the last option of each says that it doesn't
            apply.
    """

    asked: Judge
    about_sources: Collection[str]

    @property
    def name(self) -> str:
        return self.asked.name

    @property
    def fingerprint(self) -> str:
        return self.asked.fingerprint

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question, in the questions' order."""
        # what can't be scored is left to the judge, which says why
        if conversation.has_sources or conversation.not_scorable:
            ruled = set()
        else:
            ruled = set(self.about_sources)

        left = []
        for question in questions:
            if question.id not in ruled:
                left.append(question)

        if left:
            answers = await self.asked.judge(conversation, left)
        else:
            answers = []

        by_id = dict(zip([question.id for question in left], answers, strict=True))
        return [
            by_id.get(question.id) or make_not_applicable_answer(question) for question in questions
        ]


def make_not_applicable_answer(question: Question) -> Answer:
    """Return the answer that a question doesn't apply: its last option, for sure."""
    last = len(question.options) - 1
    return Answer(
        question_id=question.id,
        probabilities=tuple(float(place == last) for place in range(last + 1)),
        chosen=last,
        source=RULE_ANSWER_SOURCE,
        justification=NO_SOURCES_JUSTIFICATION,
        judge=RULE_ANSWER_SOURCE,
    )
