"""Langflow and Flowise: their messages, a row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, inside, objects, required, text, truth
from pollex.formats.log_shapes.parts import attached, call_of, result_beside, text_of, written
from pollex.formats.log_shapes.payloads import opened
from pollex.formats.log_shapes.turns import role_of


def read_langflow(fields: Fields) -> Iterator[Piece]:
    session, key = required(fields, "session_id"), text(fields.get("id"))
    words = text_of(str(fields.get("text") or ""))
    failed = fields.get("category") == "error" or truth(fields.get("error"))
    blocks = [content for block in objects(fields.get("content_blocks")) for content in objects(block.get("contents"))]
    tools = [content for content in blocks if content.get("type") == "tool_use"]
    calls = [turn for tool in tools for turn in _called(tool, tool.get("output"))]
    said = ["[error]" if failed else words, *attached(opened(fields.get("files")))]
    turn = Turn(role=role_of(fields.get("sender")), content="\n".join(filter(None, said)))
    yield Message(session, key, (*calls, turn), moment(fields.get("timestamp")), error=words if failed else "")
    value = inside(fields.get("properties")).get("positive_feedback")
    if value is not None and key:
        yield Score("message", key, value)


def read_flowise(fields: Fields) -> Iterator[Piece]:
    session, key = required(fields, "sessionId", "chatId"), text(fields.get("id"))
    said = [text_of(str(fields.get("content") or "")), *attached(opened(fields.get("fileUploads")))]
    turn = Turn(role=role_of(fields.get("role")), content="\n".join(filter(None, said)))
    calls = [
        turn
        for tool in objects(fields.get("usedTools"))
        for turn in _called({"name": tool.get("tool"), **tool}, tool.get("toolOutput"))
    ]
    yield Message(session, key, (*calls, turn), moment(fields.get("createdDate")))
    if key:
        yield from _feedback({**inside(fields.get("feedback")), "messageId": key})


def read_flowise_chat(fields: Fields) -> Iterator[Piece]:
    """Yield a chat as the page of messages exports it, with comments and without thumbs."""
    id_ = required(fields, "id", "sessionId")
    for message in objects(fields.get("messages")):
        yield from read_flowise({**message, "chatId": id_, "createdDate": message.get("time")})


def _called(tool: Mapping[str, Any], output: object) -> Iterator[Turn]:
    call = call_of(tool)
    yield Turn(role="assistant", content=call.mark, calls=(call,))
    if output is not None:
        yield Turn(role="tool", content=written(output), result=result_beside(tool))


def _feedback(fields: Fields) -> Iterator[Piece]:
    """Yield Flowise's thumb on a message, which is a row of a table of its own, or stands in the message."""
    if fields.get("rating"):
        yield Score("message", required(fields, "messageId"), fields["rating"], comment=fields.get("content"))
