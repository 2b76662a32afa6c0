"""Judges that anybody could plug in: honest ones, and some that break the contract in one way each."""

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric

Answers = list[Answer | Unanswered]
Reply = Callable[[Conversation, Sequence[Question]], Answers]


def likert(question: Question, chosen: int, **fields: Any) -> Answer:
    """A point mass on one option."""
    mass = tuple(float(n == chosen) for n in range(len(question.options)))
    return Answer(
        question_id=question.id, probabilities=mass, chosen=chosen, source="point", **fields
    )


def neutral(_conversation: Conversation, questions: Sequence[Question]) -> Answers:
    """The same to all."""
    return [likert(question, 2) for question in questions]


def by_length(conversation: Conversation, questions: Sequence[Question]) -> Answers:
    """Something that differs between conversations."""
    return [likert(question, len(conversation.turns) % 5) for question in questions]


class Held:
    """A reply that counts the answers of its that anybody holds on to.

    Attributes:
        most: Most of them at one time.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.most = self._now = 0

    def __call__(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        answers = self.reply(conversation, questions)
        for answer in answers:
            weakref.finalize(answer, self._gone)
        self._now += len(answers)
        self.most = max(self.most, self._now)
        return answers

    def _gone(self) -> None:
        self._now -= 1


class PlainJudge:
    """A judge that answers as a function says, and counts.

    Attributes:
        asked: Conversation and number of questions of each call.
        peak: Most calls at one time.
    """

    name = "plain"
    fingerprint = "plain-1"

    def __init__(self, reply: Reply = by_length) -> None:
        self.reply = reply
        self.asked: list[tuple[str, int]] = []
        self.prepared: list[int] = []
        self.peak = self._now = 0

    @property
    def learned(self) -> Mapping[str, Any]:
        return {}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Has nothing to learn."""

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        self.prepared.append(len(conversations))

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        self.asked.append((conversation.id, len(questions)))
        self._now += 1
        self.peak = max(self.peak, self._now)
        await asyncio.sleep(0.001)
        self._now -= 1
        return self.reply(conversation, questions)


def except_for(id_: str, reply: Reply, otherwise: Reply = by_length) -> Reply:
    """One reply about one conversation, another about all others."""
    return lambda conversation, questions: (reply if conversation.id == id_ else otherwise)(
        conversation, questions
    )


def raises(error: Exception) -> Reply:
    """A call that fails."""

    def reply(_conversation: Conversation, _questions: Sequence[Question]) -> Answers:
        raise error

    return reply
