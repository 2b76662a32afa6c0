"""OpenAssistant's conversations: trees of messages, ranked and reacted to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.turns import role_of


def read_tree(fields: Fields) -> Iterator[Piece]:
    waiting = [(inside(fields.get("prompt")), None)]
    while waiting:
        message, parent = waiting.pop(0)
        yield from read_message(
            {"message_tree_id": required(fields, "message_tree_id"), **message, "parent_id": parent}
        )
        key = required(message, "message_id")
        waiting += [(reply, key) for reply in objects(message.get("replies"))]  # type: ignore[misc]


def read_message(fields: Fields) -> Iterator[Piece]:
    """Yield a message with its rank among several tries, and its thumbs."""
    tree, key = required(fields, "message_tree_id"), required(fields, "message_id")
    rank = _number(fields.get("rank"))
    turn = Turn(role=role_of(fields.get("role")), content=str(fields.get("text") or ""))
    said = facts(lang=fields.get("lang"), quality=_quality(fields.get("labels")))
    parent, when = text(fields.get("parent_id")), moment(fields.get("created_date"))
    yield Message(tree, key, (turn,), when, parent, tree=True, facts=said, rank=rank)
    ups, downs = (_count(fields.get("emojis"), name) for name in ("+1", "-1"))
    if turn.role == "assistant" and ups != downs:
        yield Score("message", key, ups > downs)


def _listed(value: object, inner: str) -> dict[str, Any]:
    """Return names and values from one object or from two lists."""
    found: Mapping[str, Any] = inside(value)
    if isinstance(found.get("name"), list):
        values = found.get(inner)
        return dict(zip(map(str, found["name"]), values if isinstance(values, list) else [], strict=False))
    return dict(found)


def _count(emojis: object, name: str) -> float:
    return _number(_listed(emojis, "count").get(name))


def _number(value: object) -> float:
    """Return a count or a rank; 0 for what can't be one."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e9 else 0.0


def _quality(labels: object) -> object:
    value = _listed(labels, "value").get("quality")
    return value.get("value") if isinstance(value, Mapping) else value
