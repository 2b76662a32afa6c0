"""Chainlit: threads with their steps, and the tables of steps, threads and feedback."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.conversations.conversation import Role, Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Export, Fields, facts, inside, objects, required, text, truth
from pollex.formats.log_shapes.parts import text_of
from pollex.formats.log_shapes.payloads import opened

ROLES: dict[str, Role] = {"user_message": "user", "assistant_message": "assistant", "tool": "tool"}


def _thread(fields: Fields) -> Iterator[Piece]:
    yield from _thread_row(fields)
    for step in objects(fields.get("steps")):
        yield from _step({"threadId": fields.get("id"), **step})


def _thread_row(fields: Fields) -> Iterator[Piece]:
    user, metadata = text(fields.get("userIdentifier")), opened(fields.get("metadata"))
    yield Facts(required(fields, "id"), facts(title=fields.get("name"), user=user, metadata=metadata))


def _step(fields: Fields) -> Iterator[Piece]:
    """Yield a message, or a step without text that a thumb may refer to."""
    thread, key = required(fields, "threadId"), text(fields.get("id"))
    role = ROLES.get(str(fields.get("type")))
    words = text_of(fields.get("output") or "")
    failed = truth(fields.get("isError")) and role in ("assistant", "tool")
    turns: tuple[Turn, ...] = ()
    if role == "tool":
        called = Turn(role="assistant", content=f"[tool call: {fields.get('name')}]")
        turns = (called, Turn(role="tool", content="[error]" if failed else words))
    elif role and (words or failed):
        turns = (Turn(role=role, content="[error]" if failed else words),)
    said = facts(user=text(fields.get("name")) if role == "user" else None)
    error = words if failed else ""
    yield Message(thread, key, turns, moment(fields.get("createdAt")), error=error, facts=said)
    yield from _feedback_of(fields, key)


def _feedback_of(fields: Fields, key: str | None) -> Iterator[Score]:
    """Yield the thumb in a step, or joined to it in the same row."""
    found = inside(fields.get("feedback"))
    value = found.get("value", fields.get("feedback_value"))
    if value not in (None, "") and key:
        comment = str(found.get("comment") or fields.get("feedback_comment") or "")
        yield Score("message", key, value, comment=comment)


def _feedback(fields: Fields) -> Iterator[Piece]:
    if fields.get("value") not in (None, ""):
        target = required(fields, "forId", "stepId")
        yield Score("message", target, fields["value"], comment=str(fields.get("comment") or ""))


_STEPS = (
    {"id": "1", "threadId": "a", "type": "user_message", "output": "Hello", "createdAt": "2026-01-01T00:00:00Z"},
    {
        "id": "2",
        "threadId": "a",
        "type": "assistant_message",
        "output": "Good day",
        "createdAt": "2026-01-01T00:00:01Z",
    },
)
EXPORTS = (
    Export(
        name="Chainlit thread",
        signs=(("id", "steps", "userIdentifier"), ("id", "steps", "createdAt", "userId")),
        read=_thread,
        example=({"id": "a", "userIdentifier": "u", "steps": [_STEPS[0], {**_STEPS[1], "feedback": {"value": 1}}]},),
    ),
    Export(
        name="Chainlit steps",
        signs=(("threadId", "type", "output"),),
        read=_step,
        example=(_STEPS[0], {**_STEPS[1], "feedback_value": "1"}),
    ),
    Export(
        name="Chainlit threads",
        signs=(("id", "createdAt", "userIdentifier", "metadata"),),
        read=_thread_row,
        also=lambda fields: "steps" not in fields,
    ),
    Export(name="Chainlit feedback", signs=(("forId", "value"), ("stepId", "value", "id", "comment")), read=_feedback),
)
