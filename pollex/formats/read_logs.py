"""From rows to conversations."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pollex.conversations.conversation import Conversation, Flag, Label, Turn
from pollex.conversations.logs import LISTED, BadRow, Logs, as_list, describe_bad_rows
from pollex.conversations.spill import Shelf
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import TURN_ID_NAMES, Picked, Picker, ReadOptions
from pollex.formats.files import find_files, rows_of
from pollex.formats.json_rows import Row
from pollex.formats.log_shapes import reader_of
from pollex.formats.log_shapes.messages import read_field
from pollex.formats.log_shapes.shape import Draft, Reader
from pollex.text import SURROGATES, count, writable

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


_NUMERIC_ID = re.compile(r"\s*\+?0*(\d+?)(?:\.0+)?\s*")


def read_logs(sources: Sequence[str | Path] | str | Path, *, options: ReadOptions | None = None) -> Logs:
    """All conversations of some files.

    Args:
        sources: Paths, globs, or `-` for standard input; JSON lines, JSON, CSV or Parquet, told by ending and content.
        options: Where the usual names of fields and labels don't hold.

    Raises:
        BadInput: A file can't be read or holds no conversation, more rows are bad than `max_bad`, or different
            conversations share an id.
        WrongUse: The options contradict each other or the log.
    """
    options = options or ReadOptions()
    picker = Picker(options)
    tally = Tally(options)
    for item in _items(sources, picker, options):
        tally.add(item)
    logs = replace(tally.logs(picker.notes), label_field=picker.label_field)
    logs.check_max_bad(options.max_bad)
    tally.check_clashes()
    if not logs.conversations:
        bad = f", and {describe_bad_rows(logs.bad_rows)}" if logs.bad_rows else ""
        remedy = "check that the file is the one you meant"
        raise BadInput(f"no conversations{bad}", where=_names(sources), remedy=remedy)
    if missing := picker.never_found:
        raise BadInput(f"no row has the field of {missing[0]}", where=_names(sources), remedy="check its spelling")
    return logs


def logs_of(conversations: Iterable[Conversation]) -> Logs:
    """Conversations that are there already, as logs; for the Python API.

    Raises:
        BadInput: Different conversations share an id, or there are none.
        WrongUse: What is given holds something else: a path, or rows as they were logged.
    """
    tally, remedy = Tally(ReadOptions()), "read a log first: pollex.read_logs(PATH)"
    if isinstance(conversations, str) or not isinstance(conversations, Iterable):
        raise WrongUse(f"not conversations, but {type(conversations).__name__}", remedy=remedy)
    for number, conversation in enumerate(conversations, start=1):
        if not isinstance(conversation, Conversation):
            raise WrongUse(f"not conversations: item {number} is {type(conversation).__name__}", remedy=remedy)
        tally.add(Placed(conversation, "conversation", number))
    tally.check_clashes()
    return tally.logs([])


@dataclass(slots=True)
class Entry:
    """What is remembered of a conversation that was read.

    Attributes:
        index: Its place on the shelf.
        digest: Hash of all that makes two conversations of one id identical.
    """

    index: int
    digest: bytes
    label: Label
    flags: tuple[Flag, ...]
    place: str


class Tally:
    """Takes what is read, one by one, finds duplicates and counts."""

    def __init__(self, options: ReadOptions, memory: int | None = None) -> None:
        self._on_duplicate = options.on_duplicate
        self._shelf = Shelf() if memory is None else Shelf(memory)
        self._entries: dict[str, Entry] = {}
        self._bad_rows: list[BadRow] = []
        self._clashes: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, item: Placed | Skipped | BadRow) -> None:
        """Keeps a conversation unless its id is taken; counts anything else."""
        if isinstance(item, BadRow):
            self._bad_rows.append(item)
        elif isinstance(item, Skipped):
            self._counts["skipped"] += 1
        elif (known := self._entries.get(item.conversation.id)) is None:
            self._entries[item.conversation.id] = _entry(len(self._shelf), item)
            self._shelf.append(item.conversation)
        else:
            self._meet(known, item)

    def check_clashes(self) -> None:
        """Stops where different conversations share an id and nobody said which one counts.

        Raises:
            BadInput: Lists the first of them.
        """
        if self._clashes:
            ids = count(len(self._clashes), "id has", "ids have")
            remedy = "make ids unique, or choose: --on-duplicate first or last"
            raise BadInput(f"{ids} different conversations:{as_list(self._clashes)}\n ", remedy=remedy)

    def logs(self, notes: Sequence[str]) -> Logs:
        """Everything that was taken in."""
        entries = self._entries
        flags: dict[Flag, list[str]] = {}
        for id_, entry in entries.items():
            for flag in entry.flags:
                flags.setdefault(flag, []).append(id_)
        found = Counter(entry.label for entry in entries.values())
        return Logs(
            conversations=self._shelf if self._shelf.on_disk else tuple(self._shelf),
            bad_rows=tuple(self._bad_rows),
            duplicates=self._counts["duplicates"],
            overruled=self._counts["overruled"],
            skipped=self._counts["skipped"],
            counts={label: found[label] for label in Label},
            flags={flag: tuple(ids) for flag, ids in flags.items()},
            notes=(*notes, *self._own_notes()),
            fingerprint=hashlib.sha256(b"".join(sorted(entry.digest for entry in entries.values()))).hexdigest(),
        )

    def _meet(self, known: Entry, item: Placed) -> None:
        """Another conversation of an id that is taken."""
        entry = _entry(known.index, item)
        if entry.digest == known.digest:
            self._counts["duplicates"] += 1
        elif self._on_duplicate == "error":
            self._clashes.append(f"{item.conversation.id!r:.80} in {known.place} and {entry.place}")
        else:
            self._counts["overruled"] += 1
            if self._on_duplicate == "last":
                self._entries[item.conversation.id] = entry
                self._shelf.replace(entry.index, item.conversation)

    def _own_notes(self) -> Iterator[str]:
        nameless = sum(id_.startswith(CONTENT_ID) for id_ in self._entries)
        if nameless:
            have = count(nameless, "conversation has", "conversations have")
            yield f"{have} no id; a hash of the row stands in for it ({CONTENT_ID}…)"
        if self._counts["skipped"]:
            rows = count(self._counts["skipped"], "row is an inner step", "rows are inner steps")
            yield f"{rows} of a trace, and left out"
        yield from _lookalikes(self._entries)


def _items(
    sources: Sequence[str | Path] | str | Path, picker: Picker, options: ReadOptions
) -> Iterator[Placed | Skipped | BadRow]:
    named = [sources] if isinstance(sources, str | Path) else sources
    for source in find_files(named):
        yield from Assembler(picker, options).assemble(rows_of(source, options.encoding))


def _names(sources: Sequence[str | Path] | str | Path) -> str:
    return str(sources) if isinstance(sources, str | Path) else ", ".join(map(str, sources[:3]))


def _entry(index: int, item: Placed) -> Entry:
    conversation, source, line = item
    content = [conversation.id, conversation.text_hash, conversation.label, conversation.judge, conversation.group]
    digest = hashlib.sha256(json.dumps(content).encode("ascii")).digest()
    return Entry(index, digest, conversation.label, conversation.flags, f"{source}:{line}")


def _lookalikes(ids: Iterable[str]) -> Iterator[str]:
    """Ids such as 1, 01 and 1.0, which some program wrote differently and which may have been one."""
    same: dict[str, list[str]] = {}
    for id_ in ids:
        if found := _NUMERIC_ID.fullmatch(id_):
            same.setdefault(found.group(1), []).append(id_)
    groups = [group for group in same.values() if len(group) > 1]
    if groups:
        shown = "; ".join(" and ".join(map(repr, group)) for group in groups[:LISTED])
        yield f"ids that differ only in how a number is written: {shown}"
