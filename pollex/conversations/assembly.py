"""From rows to conversations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, get_args

from pollex.conversations.fields import TURN_ID_NAMES, Picked, Picker
from pollex.conversations.model import Conversation, Flag, Label, Turn
from pollex.conversations.options import ReadOptions
from pollex.conversations.readers import reader_of
from pollex.conversations.readers.messages import read_field
from pollex.conversations.readers.reader import Draft, Reader
from pollex.conversations.rows import BadRow, Row
from pollex.conversations.writable import SURROGATES, writable
from pollex.errors import BadInput

T = TypeVar("T")

CONTENT_ID = "sha256-"
"""How an id begins that was made from a row's content."""

_ODD: dict[Flag, re.Pattern[str]] = {
    "surrogates": SURROGATES,
    "nul": re.compile("\x00"),
    "bidi": re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "zero_width": re.compile("[\u200b\u2060-\u2064\ufeff]"),
}
"""The joiners U+200C and U+200D aren't odd: Persian, Hindi and many emoji are written with them."""


class Placed(NamedTuple):
    """A conversation, and where its first row stands."""

    conversation: Conversation
    source: str
    line: int


class Skipped(NamedTuple):
    """A row that is no conversation of its own, and nothing wrong with it."""

    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one row gives to its conversation."""

    row: Row
    draft: Draft
    picked: Picked


@dataclass(slots=True)
class Table:
    """The rows of one conversation in a flat table, and the first of them that is bad."""

    parts: list[Part]
    bad: BadRow | None = None


class Assembler:
    """Makes the conversations of one file."""

    def __init__(self, picker: Picker, options: ReadOptions) -> None:
        self._picker = picker
        self._options = options
        self._tables: dict[str, Table] = {}

    def assemble(self, rows: Iterable[Row | BadRow]) -> Iterator[Placed | Skipped | BadRow]:
        """One by one; those of a flat table at the end, since its rows may be in any order.

        Raises:
            WrongUse: The label may be in two fields, or its value matches both sides.
        """
        for row in rows:
            item = row if isinstance(row, BadRow) else self._read(row)
            if item is not None:
                yield item
        for table in self._tables.values():
            yield table.bad or self._joined(table.parts)

    def _read(self, row: Row) -> Placed | Skipped | BadRow | None:
        """What a row is; None for a turn that waits for the rest of its table."""
        try:
            if self._options.messages_field is not None:
                return self._whole(row, read_field(row.fields, self._options.messages_field))
            reader = reader_of(row.fields)
            if reader.row_is_turn:
                self._put_aside(row, reader)
                return None
            draft = reader.read(row.fields)
            return self._whole(row, draft) if draft else Skipped(row.source, row.line)
        except BadInput as error:
            return _bad(row, error)

    def _put_aside(self, row: Row, reader: Reader) -> None:
        """A bad row of a table spoils its whole conversation: without that turn it would be another one."""
        id_ = self._picker.id_of_turn(row.fields)
        if id_ is None:
            raise BadInput("the turn has no conversation id", remedy="name the column that holds it: --id-field")
        table = self._tables.setdefault(id_, Table([]))
        try:
            draft = reader.read(row.fields)
            if draft:
                table.parts.append(Part(row, draft, self._picker.pick(draft.rest, TURN_ID_NAMES)))
        except BadInput as error:
            table.bad = table.bad or _bad(row, error)

    def _whole(self, row: Row, draft: Draft) -> Placed:
        picked = self._picker.pick(draft.rest)
        conversation = _conversation(draft.turns, picked, self._options.max_turn_chars, row)
        return Placed(conversation, row.source, row.line)

    def _joined(self, parts: list[Part]) -> Placed | BadRow:
        """A table's conversation from its turns, by their numbers, or in the table's order where there are none."""
        ordered = sorted(parts, key=lambda part: part.draft.position or 0)
        try:
            _require_places(parts)
            picked = _agreed([part.picked for part in ordered])
        except BadInput as error:
            return _bad(parts[0].row, error)
        turns = tuple(turn for part in ordered for turn in part.draft.turns)
        first = parts[0].row
        return Placed(_conversation(turns, picked, self._options.max_turn_chars, first), first.source, first.line)


def _require_places(parts: Sequence[Part]) -> None:
    """All turns of a conversation are numbered, or none: nobody knows where one without a number belongs."""
    places = [part.draft.position is None for part in parts]
    if any(places) and not all(places):
        what = f"{sum(places)} of its {len(places)} turns have no number"
        raise BadInput(what, remedy="number all turns of a conversation, or none")


def _bad(row: Row, error: BadInput) -> BadRow:
    reason = f"{error.where}: {error.what}" if error.where else error.what
    return BadRow(row.source, row.line, reason, error.remedy)


def _conversation(turns: tuple[Turn, ...], picked: Picked, max_turn_chars: int, row: Row) -> Conversation:
    flags = _flags(turns, max_turn_chars)
    if "surrogates" in flags:
        turns = tuple(Turn(role=turn.role, content=writable(turn.content)) for turn in turns)
    return Conversation(
        id=writable(picked.id) or _content_id(row),
        turns=turns,
        label=picked.label,
        judge=writable(picked.judge),
        group=writable(picked.group),
        metadata=writable(picked.rest),
        flags=flags,
    )


def _flags(turns: Sequence[Turn], max_turn_chars: int) -> tuple[Flag, ...]:
    found: set[Flag] = set()
    for turn in turns:
        if len(turn.content) > max_turn_chars:
            found.add("too_large")
        if not turn.content.isascii() or "\x00" in turn.content:
            found.update(flag for flag, odd in _ODD.items() if odd.search(turn.content))
    return tuple(flag for flag in get_args(Flag) if flag in found)


def _content_id(row: Row) -> str:
    """An id from all that the row holds, so that equal rows are duplicates and no others."""
    content = json.dumps(row.fields, sort_keys=True, ensure_ascii=True)
    return CONTENT_ID + hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def _agreed(rows: Sequence[Picked]) -> Picked:
    """What the rows of one conversation say together; the label may stand in all of them or in one.

    Raises:
        BadInput: Two rows contradict each other.
    """
    labels = [row.label for row in rows if row.label is not Label.NONE]
    return Picked(
        id=rows[0].id,
        label=_only("label", labels) or Label.NONE,
        judge=_only("judge", [row.judge for row in rows]),
        group=_only("group", [row.group for row in rows]),
        rest=_merged([row.rest for row in rows]),
    )


def _only(name: str, values: Iterable[T | None]) -> T | None:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    if len(distinct) > 1:
        raise BadInput(f"its turns have different values of the {name}", remedy="give a conversation one of them")
    return distinct[0] if distinct else None


def _merged(rests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Each field's value where all turns have the same, else the list of values in the turns' order."""
    names = dict.fromkeys(name for rest in rests for name in rest)
    columns = {name: [rest.get(name) for rest in rests] for name in names}
    return {name: column[0] if all(v == column[0] for v in column) else column for name, column in columns.items()}
