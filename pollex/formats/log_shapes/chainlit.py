"""Chainlit: threads with their steps, and the tables of steps, threads and feedback."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.conversations.conversation import Role, Turn
from pollex.conversations.tools import ToolResult
from pollex.formats.assembly.pieces import Addition, Facts, Message, Piece, Score, moment
from pollex.formats.labels import as_number
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text, truth
from pollex.formats.log_shapes.parts import attached, call_of, text_of
from pollex.formats.log_shapes.payloads import opened

ROLES: dict[str, Role] = {
    "user_message": "user",
    "assistant_message": "assistant",
    "system_message": "system",
    "tool": "tool",
}


def read_thread(fields: Fields) -> Iterator[Piece]:
    yield from read_thread_row(fields)
    for step in objects(fields.get("steps")):
        yield from read_step({"threadId": fields.get("id"), **step})
    for element in objects(fields.get("elements")):
        yield from read_element({"threadId": fields.get("id"), **element})


def read_thread_row(fields: Fields) -> Iterator[Piece]:
    user = text(fields.get("userIdentifier")) or text(inside(fields.get("user")).get("identifier"))
    metadata = opened(fields.get("metadata"))
    yield Facts(required(fields, "id"), facts(title=fields.get("name"), user=user, metadata=metadata))


def read_step(fields: Fields) -> Iterator[Piece]:
    """Yield a message, or a step without text that a thumb may refer to."""
    thread, key = required(fields, "threadId"), text(fields.get("id"))
    role = ROLES.get(str(fields.get("type")))
    words = text_of(fields.get("output") or "")
    failed = truth(fields.get("isError")) and role in ("assistant", "tool")
    turns: tuple[Turn, ...] = ()
    if role == "tool":
        call = call_of({"name": fields.get("name"), "arguments": opened(fields.get("input"))})
        result = ToolResult(error=words or "failed") if failed else None
        answered = Turn(role="tool", content="[error]" if failed else words, result=result)
        turns = (Turn(role="assistant", content=call.mark, calls=(call,)), answered)
    elif role and (words or failed):
        turns = (Turn(role=role, content="[error]" if failed else words),)
    said = facts(user=text(fields.get("name")) if role == "user" else None)
    error = words if failed else ""
    yield Message(thread, key, turns, moment(fields.get("createdAt")), error=error, facts=said)
    yield from _feedback_of(fields, key)


def read_old_conversation(fields: Fields) -> Iterator[Piece]:
    for message in objects(fields.get("messages")):
        yield from read_old_message({"conversationId": fields.get("id"), **message})


def read_old_message(fields: Fields) -> Iterator[Piece]:
    """Yield a message as it was before version 1.0, where 0 is no thumb."""
    chat, key, words = required(fields, "conversationId"), text(fields.get("id")), text_of(fields.get("content") or "")
    turn = Turn(role="user" if truth(fields["authorIsUser"]) else "assistant", content=words)
    yield Message(chat, key, (turn,) if words else (), moment(fields.get("createdAt")))
    thumb, comment = fields.get("humanFeedback"), fields.get("humanFeedbackComment")
    if key and str(thumb) in ("1", "-1"):
        yield Score("message", key, thumb, comment=comment)


def read_element(fields: Fields) -> Iterator[Piece]:
    """Yield the mark of a file that stands beside a message."""
    if message := text(fields.get("forId", fields.get("stepId"))):
        yield Addition(message, mark=attached([fields])[0])


def _feedback_of(fields: Fields, key: str | None) -> Iterator[Score]:
    """Yield the thumb in a step, or joined to it in the same row."""
    found = inside(fields.get("feedback"))
    value = found.get("value", fields.get("feedback_value"))
    if value not in (None, "") and key and not _is_unset(found, value):
        comment = found.get("comment") or fields.get("feedback_comment")
        yield Score("message", key, value, comment=comment)


def _is_unset(feedback: Fields, value: object) -> bool:
    """Tell a 0 that was no thumb: while feedback had a strategy, a thumb down was -1."""
    return "strategy" in feedback and as_number(value) == "0"


def read_feedback(fields: Fields) -> Iterator[Piece]:
    if fields.get("value") not in (None, "") and not _is_unset(fields, fields["value"]):
        target = required(fields, "forId", "stepId")
        yield Score("message", target, fields["value"], comment=fields.get("comment"))
