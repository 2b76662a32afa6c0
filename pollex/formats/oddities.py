"""What rows have in an odd shape beside their conversation: told with file and line, and no reason to lose the row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Addition, Call, Message, Piece, Talk, Words
from pollex.formats.feedback import comment_of, tags_of
from pollex.formats.fields import look_up
from pollex.formats.signals import named, signals_in
from pollex.text import count

LISTED = 3
"""How many places a note names."""


class Oddities:
    """Places of what was of an odd shape, by what it was."""

    def __init__(self) -> None:
        self._places: dict[str, dict[tuple[str, int], None]] = {}

    def add(self, what: str, place: tuple[str, int]) -> None:
        """Note that a row has something odd; several of a kind in one row count once."""
        self._places.setdefault(what, {})[place] = None

    def look_at(self, turns: Iterable[Turn], place: tuple[str, int]) -> None:
        """Note calls of tools without a name."""
        if any(not call.name for turn in turns for call in turn.calls):
            self.add("a tool call has no name, and is kept as it stands", place)

    def written(self, comment: object, tags: object, place: tuple[str, int]) -> tuple[str, tuple[str, ...]]:
        """Return a comment and tags as text; what has an odd shape is noted, and kept as JSON."""
        said, chosen = comment_of(comment), tags_of(tags)
        if said is None:
            self.add("a comment is neither text nor an object with text, and is kept as JSON", place)
            said = json.dumps(comment, ensure_ascii=False, default=str)
        if chosen is None:
            self.add("tags of a comment are no list of texts, and are kept as JSON", place)
            chosen = (json.dumps(tags, ensure_ascii=False, default=str),)
        return said, chosen

    def happened(self, values: Mapping[str, Any], signals: Sequence[str], place: tuple[str, int]) -> dict[str, bool]:
        """Return which signals happened; a value that tells nothing is noted."""
        found = dict(signals_in({name: look_up(values, name) for name, _ in map(named, signals)}, signals))
        for signal in [signal for signal, yes in found.items() if yes is None]:
            self.add(f"a value of {named(signal)[0]!r} is neither yes nor no, and was left out", place)
        return {signal: yes for signal, yes in found.items() if yes is not None}

    @property
    def notes(self) -> list[str]:
        """A note on each kind."""
        return [f"{what}: {_listed(list(places))}" for what, places in self._places.items()]


def _listed(places: list[tuple[str, int]]) -> str:
    named = ", ".join(f"{source}:{line}" for source, line in places[:LISTED])
    more = len(places) - LISTED
    return f"{named} and {count(more, 'more row')}" if more > 0 else named


def turns_of_piece(piece: Piece) -> tuple[Turn, ...]:
    """Return all turns of a piece of an export."""
    found: Any = ()
    match piece:
        case Message() | Talk():
            found = piece.turns
        case Call() | Words():
            found = (*(piece.before or ()), *(piece.after or ()))
        case Addition():
            found = piece.steps
    return tuple(found)
