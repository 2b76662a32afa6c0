"""Conversations for tests."""

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.view import ConversationView
from pollex.conversations.conversation import Conversation, Label, Turn

TOPICS = [
    "a train to Leeds",
    "a table for two",
    "the null reference",
    "my invoice",
    "the build on CI",
]


def conversation(
    *said: tuple[str, str], id_: str = "c", label: Label = Label.NONE, flags: tuple[str, ...] = ()
) -> Conversation:
    """A conversation from (role, text) pairs; `u` and `a` stand for user and assistant."""
    roles = {"u": "user", "a": "assistant"}
    turns = tuple(Turn(role=roles.get(role, role), content=text) for role, text in said)
    return Conversation(id=id_, turns=turns, label=label)


def view(embedder: Embedder, *said: tuple[str, str]) -> ConversationView:
    """A view of such a conversation."""
    return ConversationView(conversation(*said), embedder)


def good(number: int) -> Conversation:
    """Solved at once, thanked for."""
    topic = TOPICS[number % len(TOPICS)]
    return conversation(
        ("u", f"I need help with {topic}, case {number}."),
        (
            "a",
            f"The cause of trouble with {topic} is the setting in line {number}. I have fixed it.",
        ),
        ("u", "Great, that works now." if number % 2 else "Thanks, that did it!"),
        id_=f"good-{number:02}",
        label=Label.POSITIVE,
    )


def bad(number: int) -> Conversation:
    """Never solved, asked for again."""
    topic = TOPICS[number % len(TOPICS)]
    return conversation(
        ("u", f"I need help with {topic}, case {number}."),
        ("a", "Sorry, I am unable to find that. Could you tell me more?"),
        ("u", f"No, I said {topic}. It is still the same error."),
        ("a", "Unfortunately it might be one of several things."),
        id_=f"bad-{number:02}",
        label=Label.NEGATIVE,
    )


def small_log(size: int = 20) -> list[Conversation]:
    """`size` good and as many bad ones, in turn."""
    return [make(number) for number in range(size) for make in (good, bad)]
