"""Logs of conversations, read strictly and counted to the last row.

Nothing is read by guess. Parquet goes through DuckDB, which reads it faithfully, in a child process (`parquet_rows`).
JSON, JSON lines and CSV go through readers of our own (`json_rows`, `csv_rows`): DuckDB's automatic ones turn ids into
dates, take ragged tables for one column and lose one of two equal keys without a word.

Every row ends as a conversation, an identical duplicate, a bad row with its place and reason, or a row that its format
has beside conversations; the counts add up. Many conversations are put on disk (`Shelf`), so that a log larger than
memory can be read and walked through.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pollex.conversations.assembly import CONTENT_ID, Assembler, Placed, Skipped
from pollex.conversations.counts import count
from pollex.conversations.fields import Picker
from pollex.conversations.files import find_files, rows_of
from pollex.conversations.model import Conversation, Flag, Label
from pollex.conversations.options import ReadOptions
from pollex.conversations.rows import BadRow
from pollex.conversations.shelf import Shelf
from pollex.errors import BadInput, WrongUse

LISTED = 5
"""How many bad rows or clashing ids an error lists."""

_NUMERIC_ID = re.compile(r"\s*\+?0*(\d+?)(?:\.0+)?\s*")


@dataclass(frozen=True)
class Logs:
    """What was read.

    Attributes:
        conversations: In the order of the files, each id once; on disk where they are many: walk, don't list them.
        bad_rows: Rows from which nothing could be read.
        duplicates: Rows left out because an identical conversation of the same id is there.
        overruled: Rows left out because `on_duplicate` prefers another of the same id.
        skipped: Rows that are no conversations of their own, a trace's inner runs for example.
        counts: Conversations by label.
        flags: Ids of the conversations with odd text, by what is odd.
        notes: What a reader of the report should know of how the log was understood.
        label_field: The field of the labels; empty where no row has one.
        fingerprint: SHA-256 (hex) over ids, turns, labels, judges and groups; the rows' order doesn't matter.
    """

    conversations: Sequence[Conversation] = field(repr=False)  # a notebook would show them all
    bad_rows: tuple[BadRow, ...] = ()
    duplicates: int = 0
    overruled: int = 0
    skipped: int = 0
    counts: dict[Label, int] = field(default_factory=dict)
    flags: dict[Flag, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    label_field: str = ""
    fingerprint: str = ""

    def __len__(self) -> int:
        return len(self.conversations)

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self.conversations)

    @property
    def positives(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb up that a judge can be asked about."""
        return tuple(c for c in self if c.label is Label.POSITIVE and not c.not_scorable)

    @property
    def negatives(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb down that a judge can be asked about."""
        return tuple(c for c in self if c.label is Label.NEGATIVE and not c.not_scorable)

    @property
    def learnable(self) -> tuple[Conversation, ...]:
        """Conversations with a thumb that a judge can be asked about."""
        return tuple(c for c in self if c.label is not Label.NONE and not c.not_scorable)

    def check_max_bad(self, max_bad: int) -> None:
        """Stops where more rows are bad than the user agreed to.

        Raises:
            BadInput: Lists the first bad rows.
        """
        if (bad := len(self.bad_rows)) > max_bad:
            remedy = f"mend them, or go on without them: --max-bad {bad}"
            raise BadInput(_told_bad(self.bad_rows), remedy=remedy)


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
        bad = f", and {_told_bad(logs.bad_rows)}" if logs.bad_rows else ""
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
            raise BadInput(f"{ids} different conversations:{_listed(self._clashes)}\n ", remedy=remedy)

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


def _told_bad(rows: Sequence[BadRow]) -> str:
    """How many rows are bad, and why the first of them are."""
    return f"{count(len(rows), 'row is', 'rows are')} bad:{_listed([str(row) for row in rows])}\n "


def _listed(lines: Sequence[str]) -> str:
    shown = "".join(f"\n  {line}" for line in lines[:LISTED])
    return shown + (f"\n  and {len(lines) - LISTED} more" if len(lines) > LISTED else "")


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
