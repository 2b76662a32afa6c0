"""Whether quoted words really stand in a conversation."""

from __future__ import annotations

import re

from pollex.agents.rubrics import Quote
from pollex.conversations.model import Conversation

_JSON_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrt"\\/]))')
_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def located(conversation: Conversation, text: str, turn: int) -> Quote | None:
    """The quote where it stands, `turn` first and then the nearest one; None where it stands nowhere.

    Only white space may differ. A model that copies a turn's JSON escapes as it saw them (`\\u003c` for `<`) has quoted
    truly: the words are then looked for once more with the escapes resolved.
    """
    nearest = sorted(range(len(conversation.turns)), key=lambda i: (abs(i - turn), i))
    for candidate in dict.fromkeys((text, unescaped(text))):
        words = normalized(candidate)
        for i in nearest if words else []:
            if words in normalized(conversation.turns[i].content):
                return Quote(conversation_id=conversation.id, turn=i, text=words)
    return None


def normalized(text: str) -> str:
    """`text` with every run of white space as one space, and none at its ends."""
    return " ".join(text.split())


def unescaped(text: str) -> str:
    """`text` with JSON's escapes resolved."""
    return _JSON_ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _SHORT_ESCAPES.get(m[2], m[2]), text)
