"""Chats of web pages, as their owners export them: Claude's data, a prompt saved in Gemini's studio, Hugging Face's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Facts, Message, Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.parts import attached
from pollex.formats.log_shapes.payloads import system_of
from pollex.formats.log_shapes.turns import turns_in


def read_claude(fields: Fields) -> Iterator[Piece]:
    id_, person = required(fields, "uuid"), text(inside(fields.get("account")).get("uuid"))
    shown = text(fields.get("current_leaf_message_uuid"))
    yield Facts(id_, facts(title=fields.get("name"), user=person), shown)
    tree = any(message.get("parent_message_uuid") for message in objects(fields.get("chat_messages")))
    for message in objects(fields.get("chat_messages")):
        key, files = required(message, "uuid"), [*objects(message.get("attachments")), *objects(message.get("files"))]
        turns = _said(message.get("sender"), message.get("content") or message.get("text"), files)
        parent, when = text(message.get("parent_message_uuid")), moment(message.get("created_at"))
        yield Message(id_, key, turns, when, parent, tree=tree)
        given = inside(message.get("chat_feedback") or message.get("feedback"))
        if given.get("type"):
            yield Score("message", key, given["type"], comment=given.get("reason"), person=person)


def _said(role: object, content: object, files: object) -> tuple[Turn, ...]:
    parts = content if isinstance(content, list) else [content]
    return turns_in({"role": role, "content": [*parts, *attached(files)]})


def read_studio(fields: Fields) -> Iterator[Piece]:
    chunks = [
        chunk for chunk in objects(inside(fields.get("chunkedPrompt")).get("chunks")) if not chunk.get("isThought")
    ]
    turns = [turn for chunk in chunks for turn in _said(chunk.get("role"), chunk.get("text") or _mark(chunk), [])]
    yield Talk(text(fields.get("id")), (*system_of(fields), *turns), facts=facts(settings=fields.get("runSettings")))


def _mark(chunk: Mapping[str, Any]) -> str:
    name = next((name for name in chunk if name.startswith(("drive", "inline"))), "")
    return "[image]" if "mage" in name else "[file]" if name else ""


def read_hub(fields: Fields) -> Iterator[Piece]:
    """Yield a tree of messages, each with the ids of those before it; in older versions a list of messages."""
    id_ = required(fields, "_id", "id", "sessionId")
    yield Facts(id_, facts(title=fields.get("title"), model=fields.get("model")))
    for message in objects(fields.get("messages")):
        key, before = required(message, "id"), message.get("ancestors")
        turns = _said(message.get("from"), message.get("content"), message.get("files"))
        parent = text(before[-1]) if isinstance(before, list) and before else None
        yield Message(id_, key, turns, moment(message.get("createdAt")), parent, tree=isinstance(before, list))
        if message.get("score"):
            yield Score("message", key, message["score"])


def read_arena(fields: Fields) -> Iterator[Piece]:
    """Yield a chat as the server logged it, after each answer and with each vote."""
    state = inside(fields.get("state"))
    id_, roles = required(state, "conv_id"), state.get("roles")
    asked = roles[0] if isinstance(roles, list) and roles else "USER"
    pairs = [pair for pair in state.get("messages") or [] if isinstance(pair, list) and len(pair) == 2 and pair[1]]
    turns = [turn for who, words in pairs for turn in _said("user" if who == asked else "assistant", words, [])]
    system = system_of({"system": state.get("system_message")})
    yield Talk(id_, (*system, *turns), at=moment(fields.get("tstamp")), facts=facts(model=fields.get("model")))
    if fields.get("type") in ("upvote", "downvote"):
        yield Score("conversation", id_, fields["type"], at=moment(fields.get("tstamp")))
