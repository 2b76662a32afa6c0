"""Judges of one reply: what held before it is the same in both arms, and would hide an effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pollex.agents.llm.batched import Batched
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.prompts.prompt import load
from pollex.rubrics.answers import Answer, Question, Unanswered


@dataclass
class OnReply(Batched):
    """Rubrics asked of the last reply alone, with the prompt `judge_reply`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.prompt = load("judge_reply")
        self.judge = f"{self.asker.name} {self.prompt.name}@{self.prompt.version}"


@dataclass(frozen=True)
class LastExchangeJudge:
    """A judge that is shown the last exchange alone: a built-in one reads events wherever they stand."""

    judge: Judge

    @property
    def name(self) -> str:
        """See `Agent`."""
        return self.judge.name

    @property
    def fingerprint(self) -> str:
        """See `Agent`."""
        return f"last exchange, {self.judge.fingerprint}"

    async def judge_reply(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Judge the turns from the user's last one on."""
        users = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
        last = Conversation(id=conversation.id, turns=conversation.turns[users[-1] :])
        return await self.judge.judge(last, questions)


@dataclass(frozen=True)
class ModelReplyJudge:
    """A model that judges the last reply of a conversation."""

    judge: LlmJudge

    @classmethod
    def of(cls, judge: LlmJudge) -> ModelReplyJudge:
        """Return a model's judge of replies."""
        return cls(LlmJudge(judge.asker, OnReply(judge.asker)))

    @property
    def name(self) -> str:
        """See `Agent`."""
        return self.judge.name

    @property
    def fingerprint(self) -> str:
        """See `Agent`."""
        return self.judge.fingerprint

    async def judge_reply(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Judge the last reply in its conversation."""
        return await self.judge.judge(conversation, questions)


ReplyJudge = LastExchangeJudge | ModelReplyJudge


def reply_judge_of(judge: Judge) -> ReplyJudge:
    """Return the judge of replies that goes with a set's judge."""
    return ModelReplyJudge.of(judge) if isinstance(judge, LlmJudge) else LastExchangeJudge(judge)
