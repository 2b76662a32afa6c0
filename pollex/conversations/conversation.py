"""Conversations, their turns and labels."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["user", "assistant", "system", "tool"]


BOUNDS = {"positive": ">=4", "negative": "<=2"}
"""Bounds that make thumbs of ratings, as messages propose them."""


MOST_TURNS = 5_000
"""Turns of a conversation that a judge can be asked about: of seconds of work for the built-in one."""


class Label(StrEnum):
    """The verdict that a person gave a whole conversation."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NONE = "none"


Flag = Literal["surrogates", "nul", "bidi", "zero_width", "too_large"]
"""What is odd about a conversation's text: lone surrogates that were replaced by U+FFFD, characters that deceive the
eye (kept as they are), a turn over the size limit."""


DRAWN = "drawn"
"""Field that says how a labeled conversation came before whoever labeled it."""

QUEUES = frozenset({"unsure", "telling", "window", "differs", "filter", "chosen", "doubtful"})
"""Ways of drawing that prefer some conversations: figures on such ones hold for no others."""


class Turn(BaseModel):
    """One message: who spoke, and the words."""

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str


class Conversation(BaseModel):
    """A conversation as it was logged.

    Attributes:
        id: Text, unique within a log.
        turns: In the order they were said.
        label: The thumb.
        judge: Who gave the label, where the log says so.
        group: What must stay on one side of a split, a user id for example.
        metadata: All other fields of the log's row, untouched.
        flags: What is odd about the text.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    turns: tuple[Turn, ...]
    label: Label = Label.NONE
    judge: str | None = None
    group: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    flags: tuple[Flag, ...] = ()

    @cached_property
    def text_hash(self) -> str:
        """SHA-256 (hex) of the turns alone: equal for two conversations of the same text."""
        turns = [[turn.role, turn.content] for turn in self.turns]
        return hashlib.sha256(json.dumps(turns, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()

    @property
    def opening(self) -> str:
        """First user turn with text, for lists; else the first turn with text."""
        said = [turn for turn in self.turns if turn.content.strip()]
        first = next((turn for turn in said if turn.role == "user"), said[0] if said else None)
        return first.content if first else ""

    @property
    def preferred(self) -> bool:
        """Whether a queue chose it to be labeled for what it is, and not at random."""
        return self.metadata.get(DRAWN) in QUEUES

    @cached_property
    def not_scorable(self) -> str:
        """Reason why no judge can be asked about this conversation; empty if one can."""
        if "too_large" in self.flags:
            return "too large: its text is over the size limit"
        if len(self.turns) > MOST_TURNS:
            return f"too large: more than {MOST_TURNS:,} turns"
        if not any(turn.content.strip() for turn in self.turns):
            return "no turn with text"
        roles = {turn.role for turn in self.turns if turn.content.strip()}
        if "user" not in roles:
            return "no user turn"
        if "assistant" not in roles:
            return "no assistant turn"
        return ""


def messages_of(conversation: Conversation) -> list[dict[str, str]]:
    """Return the turns, OpenAI style."""
    return [{"role": turn.role, "content": turn.content} for turn in conversation.turns]
