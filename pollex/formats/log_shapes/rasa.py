"""Rasa: trackers, and the events that its broker sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.assembly.thumbs import NAMES, folded
from pollex.formats.log_shapes.exports import Fields, inside, objects, required, text
from pollex.formats.log_shapes.payloads import opened


def read_tracker(fields: Fields) -> Iterator[Piece]:
    sender, slots = required(fields, "sender_id"), inside(fields.get("slots"))
    for event in objects(fields.get("events")):
        yield from read_event({**event, "sender_id": sender}, slots=not slots)
    for name, value in slots.items():
        yield from _slot(sender, str(name), value)


def read_stored(fields: Fields) -> Iterator[Piece]:
    """Yield an event as a row of the tracker store's table."""
    yield from read_event({**inside(fields.get("data")), "sender_id": fields.get("sender_id")})


def read_event(fields: Fields, *, slots: bool = True) -> Iterator[Piece]:
    """Yield a message; a text that begins with a slash is a payload."""
    sender, kind, words = required(fields, "sender_id"), fields.get("event"), str(fields.get("text") or "")
    seen = inside(fields.get("data")) if kind == "bot" else {}
    marks = [f"[{mark}]" for name, mark in (("image", "image"), ("attachment", "file")) if seen.get(name)]
    if kind in ("user", "bot") and (words or marks) and not words.startswith("/"):
        turn = Turn(role="user" if kind == "user" else "assistant", content="\n".join(filter(None, [words, *marks])))
        yield Message(sender, text(fields.get("message_id")), (turn,), moment(fields.get("timestamp")))
    elif slots and kind == "slot":
        yield from _slot(sender, str(fields.get("name")), fields.get("value"))
    elif slots and words.startswith("/"):
        payload = opened(words[words.find("{") :]) if "{" in words else None
        for name, value in payload.items() if isinstance(payload, Mapping) else ():
            yield from _slot(sender, str(name), value)


def _slot(sender: str, name: str, value: object) -> Iterator[Score]:
    """Yield the feedback in a slot, by its name."""
    thumb = folded(name.removesuffix("_value")) in NAMES
    if thumb and isinstance(value, str | int | float):
        yield Score("conversation", sender, value, name=name.removesuffix("_value"))
