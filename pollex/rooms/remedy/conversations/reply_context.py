"""A turn of the assistant in its conversation, which is asked for again."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from pollex.conversations.conversation import Conversation, Turn


@dataclass(frozen=True)
class ReplyContext:
    """A turn of the assistant in its conversation: all before it is asked again, the turn itself isn't.

    Attributes:
        turn: Index of the assistant's turn.
    """

    conversation: Conversation
    turn: int

    @property
    def id(self) -> str:
        """Names the context within a log."""
        return f"{self.conversation.id}@{self.turn}"

    @property
    def user(self) -> str:
        """Whose conversation it is; without a group the conversation stands for its user."""
        return self.conversation.group or self.conversation.text_hash

    @property
    def before(self) -> tuple[Turn, ...]:
        """All turns before the reply, without the system's."""
        return tuple(turn for turn in self.conversation.turns[: self.turn] if turn.role != "system")

    @property
    def reply(self) -> Turn:
        """The reply that was logged."""
        return self.conversation.turns[self.turn]

    @property
    def cut(self) -> Conversation:
        """The conversation up to and with the logged reply."""
        return self.with_reply(self.reply.content)

    def with_reply(self, text: str) -> Conversation:
        """Return the conversation up to another reply, without the system's turns, label or metadata."""
        turns = (*self.before, Turn(role="assistant", content=text))
        return Conversation(
            id=self.conversation.id,
            turns=turns,
            group=self.conversation.group,
        )


def is_answerable_reply(conversation: Conversation, turn: int) -> bool:
    """Tell whether a turn is the assistant's, with words and no calls, and after one of the user's."""
    turns = conversation.turns
    here = turns[turn]
    user_spoke = any(
        earlier_turn.role == "user" and earlier_turn.content.strip()
        for earlier_turn in turns[:turn]
    )
    return here.role == "assistant" and bool(here.content.strip()) and not here.calls and user_spoke


def shuffle_contexts(contexts: Iterable[ReplyContext], seed: int) -> list[ReplyContext]:
    """Order contexts by a random permutation of users: the same for a seed, whatever else is in the log."""
    return sorted(
        contexts,
        key=lambda context: (
            hash_to_random_order(context.user, seed),
            hash_to_random_order(context.id, seed),
        ),
    )


def hash_to_random_order(name: str, seed: int) -> str:
    """Return hex digits that put names into an order by chance."""
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "replace")).hexdigest()
