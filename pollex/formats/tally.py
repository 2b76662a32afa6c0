"""Counts of what was read: conversations, duplicates, clashes, bad and skipped rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pollex.conversations.conversation import Conversation, Flag, Label
from pollex.conversations.logs import BadRow, Logs, as_list
from pollex.conversations.spill import SpilledList
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.text import count

CONTENT_ID = "sha256-"
"""How an id begins that was made from a row's content."""


class Placed(NamedTuple):
    """A conversation, and the place of its first row."""

    conversation: Conversation
    source: str
    line: int


class Skipped(NamedTuple):
    """A row that is no conversation of its own, and nothing wrong with it."""

    source: str
    line: int


@dataclass(slots=True)
class Entry:
    """The record of a conversation that was read.

    Attributes:
        index: Its place in the list on disk.
        digest: Hash of everything that makes two conversations of one id identical.
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
        self._shelf = SpilledList() if memory is None else SpilledList(memory)
        self._entries: dict[str, Entry] = {}
        self._bad_rows: list[BadRow] = []
        self._clashes: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, item: Placed | Skipped | BadRow) -> None:
        """Keep a conversation unless its id is taken; count anything else."""
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
        """Raise an error if different conversations share an id and no option decides.

        Raises:
            BadInput: Lists the first of them.
        """
        if self._clashes:
            ids = count(len(self._clashes), "id has", "ids have")
            what = f"{ids} different conversations:{as_list(self._clashes)}\n "
            raise BadInput(what, remedy="make ids unique, or say which counts", option={"on_duplicate": "last"})

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
            rows = count(self._counts["skipped"], "row or span is an inner step", "rows or spans are inner steps")
            yield f"{rows} of a trace, and left out"


def _entry(index: int, item: Placed) -> Entry:
    conversation, source, line = item
    content = [conversation.id, conversation.text_hash, conversation.label, conversation.judge, conversation.group]
    digest = hashlib.sha256(json.dumps(content).encode("ascii")).digest()
    return Entry(index, digest, conversation.label, conversation.flags, f"{source}:{line}")
