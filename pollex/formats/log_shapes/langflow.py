"""Langflow and Flowise: their messages, a row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Export, Fields, inside, required, text
from pollex.formats.log_shapes.parts import text_of
from pollex.formats.log_shapes.turns import role_of


def _langflow(fields: Fields) -> Iterator[Piece]:
    session, key = required(fields, "session_id"), text(fields.get("id"))
    words = text_of(str(fields.get("text") or ""))
    failed = fields.get("category") == "error" or fields.get("error") is True
    turn = Turn(role=role_of(fields.get("sender")), content="[error]" if failed else words)
    yield Message(session, key, (turn,), moment(fields.get("timestamp")), error=words if failed else "")
    value = inside(fields.get("properties")).get("positive_feedback")
    if value is not None and key:
        yield Score("message", key, value)


def _flowise(fields: Fields) -> Iterator[Piece]:
    session, key = required(fields, "sessionId", "chatId"), text(fields.get("id"))
    turn = Turn(role=role_of(fields.get("role")), content=text_of(str(fields.get("content") or "")))
    yield Message(session, key, (turn,), moment(fields.get("createdDate")))
    feedback: Mapping[str, object] = inside(fields.get("feedback"))
    if feedback.get("rating") is not None and key:
        yield Score("message", key, feedback["rating"], comment=str(feedback.get("content") or ""))


_ASKED = {"id": "1", "timestamp": "2026-01-01 00:00:00", "sender": "User", "session_id": "a", "text": "Hello"}
_ANSWERED = {"id": "2", "timestamp": "2026-01-01 00:00:01", "sender": "Machine", "session_id": "a", "text": "Good day"}
EXPORTS = (
    Export(
        name="Langflow messages",
        signs=(("session_id", "sender", "text", "timestamp", "properties"),),
        read=_langflow,
        example=({**_ASKED, "properties": {}}, {**_ANSWERED, "properties": {"positive_feedback": True}}),
    ),
    Export(
        name="Flowise messages",
        signs=(("sessionId", "role", "content", "createdDate"), ("chatId", "role", "content", "createdDate")),
        read=_flowise,
        example=(
            {"id": "1", "sessionId": "a", "role": "userMessage", "content": "Hello", "createdDate": "2026-01-01"},
            {
                "id": "2",
                "sessionId": "a",
                "role": "apiMessage",
                "content": "Good day",
                "createdDate": "2026-01-02",
                "feedback": {"rating": "THUMBS_UP"},
            },
        ),
    ),
)
