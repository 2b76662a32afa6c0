"""Answers of which somebody chose one: the others were never said."""

from collections.abc import Mapping
from typing import Any

CHOSEN = frozenset(
    ("if_chosen", "is_chosen", "isChosen", "chosen", "is_selected", "isSelected", "selected")
)
"""Fields that say whether somebody chose an answer of several."""


def was_left(message: object) -> bool:
    """Return whether a message says that nobody chose it."""
    if not isinstance(message, dict) or CHOSEN.isdisjoint(message):
        return False
    return any(message.get(name) in (False, "false", "False") for name in CHOSEN)


def without_left(messages: Any) -> Any:
    """Return a list without the answers that nobody chose, where others are marked as chosen."""
    if not isinstance(messages, list) or not any(map(was_left, messages)):
        return messages
    marked = [
        message
        for message in messages
        if isinstance(message, Mapping) and any(message.get(name) is True for name in CHOSEN)
    ]
    return [message for message in messages if not was_left(message)] if marked else messages
