"""The definition of a reader, and its result for a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pollex.conversations.conversation import Turn

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of one row.

    Attributes:
        turns: All turns of the conversation, or the one turn of a row that is a turn.
        rest: The fields that the turns weren't read from; id and label are looked for here.
        position: Place of the turn in its conversation; None if the log's order decides.
        at: When the turn was said, in seconds since 1970; decides where all turns have it and none has a place.
    """

    turns: tuple[Turn, ...]
    rest: dict[str, Any]
    position: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """One log shape.

    Attributes:
        name: For people.
        shape: What a row looks like, for people, on one line.
        recognises: Whether a row has this shape. No two readers recognise the same row.
        read: None for a row that is no conversation of its own; raises `BadInput` for one that can't be read.
        row_is_turn: Rows with one conversation id make a conversation together.
    """

    name: str
    shape: str
    recognises: Callable[[Fields], bool]
    read: Callable[[Fields], Draft | None]
    row_is_turn: bool = False
