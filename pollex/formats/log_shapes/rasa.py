"""Rasa: trackers, and the events that its broker sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.assembly.thumbs import NAMES, folded
from pollex.formats.log_shapes.exports import Export, Fields, inside, objects, required, text
from pollex.formats.log_shapes.payloads import opened


def _tracker(fields: Fields) -> Iterator[Piece]:
    sender = required(fields, "sender_id")
    for event in objects(fields.get("events")):
        yield from _event({**event, "sender_id": sender}, slots=False)
    for name, value in inside(fields.get("slots")).items():
        yield from _slot(sender, str(name), value)


def _event(fields: Fields, *, slots: bool = True) -> Iterator[Piece]:
    """Yield a message; a text that begins with a slash is a payload."""
    sender, kind, words = required(fields, "sender_id"), fields.get("event"), str(fields.get("text") or "")
    if kind in ("user", "bot") and words and not words.startswith("/"):
        turn = Turn(role="user" if kind == "user" else "assistant", content=words)
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


_EVENTS = [
    {"event": "user", "text": "Hello", "timestamp": 1},
    {"event": "bot", "text": "Good day", "timestamp": 2},
]
EXPORTS = (
    Export(
        name="Rasa trackers",
        signs=(("sender_id", "events", "slots"),),
        read=_tracker,
        example=({"sender_id": "a", "events": _EVENTS, "slots": {"feedback_value": "positive"}},),
    ),
    Export(
        name="Rasa events",
        signs=(("sender_id", "event", "timestamp"),),
        read=_event,
        example=tuple(
            {"sender_id": "a", **event}
            for event in (*_EVENTS, {"event": "slot", "name": "feedback_value", "value": "positive", "timestamp": 3})
        ),
    ),
)
