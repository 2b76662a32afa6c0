"""Live chats and bots: Chatwoot, Botpress, activities of the Bot Framework, transcripts of Amazon Connect."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, moment
from pollex.formats.log_shapes.exports import Fields, at, facts, objects, required, text, truth
from pollex.formats.log_shapes.parts import attached

USERS = frozenset(("0", "incoming", "user", "customer"))
AGENTS = frozenset(("1", "3", "outgoing", "template", "bot", "agent", "system"))
"""Who speaks in these tools; Chatwoot numbers it. Its 2 is what happened, in words that nobody said."""


def _said(conversation: str, key: str | None, speaker: object, words: object, when: object) -> Iterator[Message]:
    who, said = str(speaker).casefold(), str(words or "").strip()
    if said and who in USERS | AGENTS:
        yield Message(
            conversation, key, (Turn(role="user" if who in USERS else "assistant", content=said),), moment(when)
        )


def read_chatwoot(fields: Fields) -> Iterator[Piece]:
    """Yield a message; private notes are none."""
    if not truth(fields.get("private")):
        words = "\n".join(filter(None, [str(fields.get("content") or ""), *attached(fields.get("attachments"))]))
        id_, who = required(fields, "conversation_id"), fields.get("message_type")
        yield from _said(id_, text(fields.get("id")), who, words, fields.get("created_at"))


def read_chatwoot_page(fields: Fields) -> Iterator[Piece]:
    """Yield a page of conversations, whose messages may be the newest alone."""
    for conversation in objects(at(fields, "data.payload")):
        yield Facts(required(conversation, "id"), facts(user=text(at(conversation, "meta.sender.id"))))
        for message in objects(conversation.get("messages")):
            yield from read_chatwoot(message)


def read_botpress(fields: Fields) -> Iterator[Piece]:
    payload = at(fields, "payload.text") or f"[{fields.get('type')}]"
    yield from _said(
        *(required(fields, "conversationId"), text(fields.get("id")), fields.get("direction"), payload),
        fields.get("createdAt"),
    )


def read_activity(fields: Fields) -> Iterator[Piece]:
    """Yield a message; other activities are no words."""
    if fields.get("type") == "message":
        words = "\n".join(filter(None, [str(fields.get("text") or ""), *attached(fields.get("attachments"))]))
        id_, who = required(fields, "conversation.id"), at(fields, "from.role")
        yield from _said(id_, text(fields.get("id")), who, words, fields.get("timestamp"))


def read_connect(fields: Fields) -> Iterator[Piece]:
    id_ = required(fields, "ContactId", "InitialContactId")
    for one in objects(fields.get("Transcript")):
        if one.get("Type", "MESSAGE") == "MESSAGE":
            key, who = text(one.get("Id")), one.get("ParticipantRole")
            yield from _said(id_, key, who, one.get("Content"), one.get("AbsoluteTime"))
