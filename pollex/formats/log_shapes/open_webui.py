"""Open WebUI: exported feedback with a snapshot of the chat, and exported chats."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, at, facts, inside, objects, required, text
from pollex.formats.log_shapes.parts import attached, call_of, text_of, written
from pollex.formats.log_shapes.payloads import opened, system_of
from pollex.formats.log_shapes.turns import role_of

_DETAILS = re.compile(r"<details\b([^>]*)>(.*?)</details>\n?", re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


def read_feedback(fields: Fields) -> Iterator[Piece]:
    """Yield the chat of a snapshot, and the thumb."""
    chat = opened(inside(fields.get("snapshot")).get("chat"))
    data, meta = inside(fields.get("data")), inside(fields.get("meta"))
    id_, person = text(meta.get("chat_id")) or required(inside(chat), "id"), text(fields.get("user_id"))
    when = moment(fields.get("updated_at", fields.get("created_at")))
    compared = facts(arena=meta.get("arena"), sibling_model_ids=data.get("sibling_model_ids"))
    if isinstance(chat, Mapping):
        yield from _chat_of(id_, chat, person, moment(chat.get("updated_at")) or when, annotated=False)
    yield Facts(id_, compared)
    if data.get("rating") is not None:
        yield Score(
            *("message", required(meta, "message_id"), data["rating"]),
            comment=data.get("comment"),
            tags=[data.get("reason"), data.get("tags")],
            person=person,
            at=when,
        )


def read_chat(fields: Fields) -> Iterator[Piece]:
    when = moment(fields.get("updated_at"))
    yield from _chat_of(required(fields, "id"), fields, text(fields.get("user_id")), when, annotated=True)


def _chat_of(
    id_: str, fields: Mapping[str, Any], person: str | None, when: float | None, *, annotated: bool
) -> Iterator[Piece]:
    """Yield the messages of a chat as it was at a moment."""
    inner = opened(fields.get("chat", fields))
    if not isinstance(inner, Mapping):
        raise BadInput("the chat has no messages", remedy="export the feedback with its snapshots, or the chats")
    messages = at(inner, "history.messages")
    if not isinstance(messages, Mapping) or not messages:
        messages = _in_a_row(inner.get("messages"))
    models = facts(title=fields.get("title"), model=inner.get("models"), user=person)
    state, system = when or 0, system_of({"system": at(inner, "params.system") or inner.get("system")})
    yield Facts(id_, models, text(at(inner, "history.currentId")), state)
    for key, message in messages.items():
        if isinstance(message, Mapping) and message.get("role") is not None:
            said = _message(id_, str(key), message)
            before = () if said.parent else system
            yield said._replace(turns=before + said.turns, state=state)
            if annotated:
                yield from _annotation(str(key), message, person)


def _in_a_row(messages: object) -> dict[str, Any]:
    """Convert a list of messages to a tree with one path."""
    found: dict[str, Any] = {}
    before = None
    for index, message in enumerate(objects(messages)):
        key = text(message.get("id")) or str(index)
        found[key] = {**message, "parentId": before}
        before = key
    return found


def _message(id_: str, key: str, message: Mapping[str, Any]) -> Message:
    turns, error = _turns(message)
    parent = text(message.get("parentId"))
    return Message(id_, key, turns, moment(message.get("timestamp")), parent, tree=True, error=error)


def _turns(message: Mapping[str, Any]) -> tuple[tuple[Turn, ...], str]:
    role, content = role_of(message["role"]), message.get("content")
    words = content if isinstance(content, str) else text_of(content)
    turns = list(_told(words)) if role == "assistant" else [Turn(role=role, content=text_of(words))]
    beside = attached(message.get("files"))
    if beside and turns:
        turns[-1] = turns[-1].model_copy(update={"content": "\n".join(filter(None, [turns[-1].content, *beside]))})
    error = message.get("error")
    failed = str(error.get("content") or "failed") if isinstance(error, Mapping) else "failed" if error else ""
    if failed and not any(turn.content.strip() for turn in turns):
        return (Turn(role="assistant", content="[error]"),), failed
    return tuple(turns), failed


def _told(words: str) -> Iterator[Turn]:
    """Yield an answer's turns, with tool calls and results that its text contains."""
    said, end = "", 0
    for found in _DETAILS.finditer(words):
        said += words[end : found.start()]
        end = found.end()
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found.group(1))}
        if attributes.get("type") != "tool_calls":
            said += "" if attributes.get("type") in ("reasoning", "code_interpreter") else found.group(0)
            continue
        call = call_of({**attributes, "arguments": opened(attributes.get("arguments"))})
        told = "\n".join(filter(None, [text_of(said.strip()), call.mark]))
        yield Turn(role="assistant", content=told, calls=(call,))
        said = ""
        if "result" in attributes:
            yield Turn(role="tool", content=written(opened(attributes["result"])))
    rest = text_of((said + words[end:]).strip("\n"))
    if rest or not end:
        yield Turn(role="assistant", content=rest)


def _annotation(key: str, message: Mapping[str, Any], person: str | None) -> Iterator[Score]:
    """Yield the thumb in a chat's message, which feedback repeats."""
    annotation = message.get("annotation")
    if isinstance(annotation, Mapping) and annotation.get("rating") is not None:
        said, tags = annotation.get("comment"), [annotation.get("reason"), annotation.get("tags")]
        yield Score("message", key, annotation["rating"], comment=said, tags=tags, person=person, summary=True)


def is_feedback(fields: Fields) -> bool:
    """Return whether a row names the message that was rated."""
    return "message_id" in inside(fields.get("meta"))


def is_chat(fields: Fields) -> bool:
    """Return whether a row has a chat's messages."""
    return bool(inside(fields.get("chat")).keys() & {"history", "messages"})
