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
class ReplyJudge:
    """A judge of the last reply of a conversation.

    Attributes:
        alone: Whether it is shown the last exchange alone: a built-in one reads events wherever they stand.
    """

    judge: Judge
    alone: bool

    @property
    def name(self) -> str:
        """See `Agent`."""
        return self.judge.name

    @property
    def fingerprint(self) -> str:
        """See `Agent`."""
        return f"last exchange, {self.judge.fingerprint}" if self.alone else self.judge.fingerprint

    async def judge_reply(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """Judge the last reply, in its conversation or by the turns from the user's last one on."""
        if self.alone:
            users = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
            conversation = Conversation(id=conversation.id, turns=conversation.turns[users[-1] :])
        return await self.judge.judge(conversation, questions)


def reply_judge_of(judge: Judge) -> ReplyJudge:
    """Return the judge of replies that goes with a set's judge."""
    if isinstance(judge, LlmJudge):
        return ReplyJudge(LlmJudge(judge.asker, OnReply(judge.asker)), alone=False)
    return ReplyJudge(judge, alone=True)
