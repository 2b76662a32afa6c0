"""LibreChat: exported conversations, with or without their branches, and the collection of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, objects, required, text, truth
from pollex.formats.log_shapes.parts import attached
from pollex.formats.log_shapes.turns import turns_in


def read_facts(fields: Fields) -> Iterator[Piece]:
    yield Facts(required(fields, "conversationId"), facts(title=fields.get("title"), endpoint=fields.get("endpoint")))


def read_conversation(fields: Fields) -> Iterator[Piece]:
    id_ = required(fields, "conversationId")
    yield from read_facts(fields)
    for message in _flat(fields.get("messagesTree") or fields.get("messages") or [], None):
        yield from read_message({"conversationId": id_, **message})


def _flat(messages: object, parent: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of a tree of children, or of a list with parents."""
    waiting = [(message, parent) for message in objects(messages)]
    while waiting:
        message, above = waiting.pop(0)
        yield message if "parentMessageId" in message else {**message, "parentMessageId": above}
        waiting += [(child, text(message.get("messageId"))) for child in objects(message.get("children"))]


def read_message(fields: Fields) -> Iterator[Piece]:
    id_, key = required(fields, "conversationId"), required(fields, "messageId")
    said = facts(user=text(fields.get("user")), model=fields.get("model"))
    parent = text(fields.get("parentMessageId"))
    when = moment(fields.get("createdAt"))
    turns, error = _turns(fields)
    yield Message(id_, key, turns, when, parent, tree=True, error=error, facts=said)
    feedback = fields.get("feedback")
    if isinstance(feedback, Mapping) and feedback.get("rating") is not None:
        words, person = feedback.get("text"), text(fields.get("user"))
        yield Score("message", key, feedback["rating"], comment=words, tags=feedback.get("tag"), person=person)


def _turns(fields: Fields) -> tuple[tuple[Turn, ...], str]:
    """Return the turns of `text` or parts, and an error.

    `sender` is a model's name, so it does not give the role.
    """
    role = "user" if truth(fields.get("isCreatedByUser")) else "assistant"
    parts = objects(fields.get("content"))
    errors = [str(part.get("error")) for part in parts if part.get("type") == "error"]
    failed = (errors or [str(fields.get("text") or "failed")])[0] if truth(fields.get("error")) or errors else ""
    if failed and not any(part.get("type") == "text" for part in parts):
        return (Turn(role="assistant", content="[error]"),), failed
    seen = attached(fields.get("files"))
    return turns_in({"role": role, "content": [*(parts or filter(None, [fields.get("text")])), *seen]}), failed
