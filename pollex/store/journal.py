"""The journal: facts that must not be lost, one JSON line each, with a checksum, in the order in which they happened.

It holds what was paid for (the ledger) and what a resume needs (runs, steps). A line reads

    {"crc":"1c291ca3","table":"ledger","row":{"key":"…","kind":"result",…}}

where `crc` is the CRC-32 of everything after it up to the closing brace, and `row` is a row of the database's table of
that name. So the database can be filled from the journal, and the journal from the database, without a question asked.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pollex.errors import PollexError, StoreDamaged, StoreFull, WrongUse

FILE = "journal.jsonl"
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_LINE = re.compile(rb'\{"crc":"([0-9a-f]{8})",("table":"([a-z_]+)","row":(\{.*\}))\}\n', re.DOTALL)


class Entry(NamedTuple):
    """One fact: the table that it belongs to, and the row as JSON text."""

    table: str
    row: str

    @property
    def size(self) -> int:
        """Bytes of the row."""
        return len(self.row)

    @property
    def line(self) -> bytes:
        """As it stands in the journal."""
        body = f'"table":"{self.table}","row":{self.row}'.encode()
        return b'{"crc":"%08x",%b}\n' % (zlib.crc32(body), body)

    @classmethod
    def read(cls, line: bytes) -> Entry | None:
        """The entry of a line; None when the line is damaged."""
        match = _LINE.fullmatch(line)
        if match is None or zlib.crc32(match[2]) != int(match[1], 16):
            return None
        return cls(match[3].decode(), match[4].decode())


class Place(NamedTuple):
    """Where a line stands, in bytes."""

    offset: int
    length: int


class Mark(NamedTuple):
    """How far the journal goes: bytes, and the CRC-32 of all of them."""

    offset: int = 0
    crc: int = 0

    @property
    def size(self) -> int:
        """Nothing to speak of."""
        return 0

    def after(self, line: bytes) -> Mark:
        """The mark behind one more line."""
        return Mark(self.offset + len(line), zlib.crc32(line, self.crc))


START = Mark()


@dataclass
class Survey:
    """What one reading of the whole journal found.

    Attributes:
        end: Behind the last complete line.
        known: True where the journal begins with exactly what the mark that was asked for stands for.
        counts: Lines by table before that mark.
        damaged: Complete lines that fail their checksum.
        partial: Bytes of a last line that was never finished.
    """

    end: Mark = START
    known: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    damaged: int = 0
    partial: int = 0


class Journal:
    """The open journal. Append from one thread; `read` from any.

    Args:
        path: Created when it isn't there and `writable`.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path, self.end = path, START
        self._flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if writable else os.O_RDONLY
        self._file = os.open(path, self._flags, 0o600)

    @property
    def has_entries(self) -> bool:
        """Whether there is at least one good line."""
        return next(self.entries(), None) is not None

    def reopen(self) -> None:
        """Turns to the file that now has the journal's name."""
        os.close(self._file)
        self._file = os.open(self.path, self._flags, 0o600)

    def survey(self, mark: Mark, visit: Callable[[Entry, Place], None]) -> Survey:
        """Reads all of it once, calls `visit` with each good line, and leaves `end` behind the last complete one."""
        found = Survey(known=mark == START)
        for line in self._lines():
            if not line.endswith(b"\n"):
                found.partial = len(line)
                break
            entry = Entry.read(line)
            if entry is None:
                found.damaged += 1
            else:
                visit(entry, Place(found.end.offset, len(line)))
                found.counts[entry.table] += found.end.offset < mark.offset
            found.end = found.end.after(line)
            found.known = found.known or found.end == mark
        self.end = found.end
        return found

    def cut(self) -> None:
        """Removes the unfinished line behind `end`."""
        os.ftruncate(self._file, self.end.offset)

    def append(self, entries: Sequence[Entry]) -> list[Place]:
        """Makes `entries` durable: one write, one fsync. When that fails, none of them is in the journal.

        Raises:
            StoreFull: There is no room on the disk.
        """
        lines = [entry.line for entry in entries]
        try:
            write_all(self._file, b"".join(lines))
            os.fsync(self._file)
        except OSError as failure:
            os.ftruncate(self._file, self.end.offset)
            raise write_failed(self.path, failure) from failure
        places = []
        for line in lines:
            places.append(Place(self.end.offset, len(line)))
            self.end = self.end.after(line)
        return places

    def read(self, place: Place) -> Entry:
        """The entry at a place that `survey` or `append` gave."""
        entry = Entry.read(os.pread(self._file, place.length, place.offset))
        if entry is None:
            raise StoreDamaged(
                f"the journal was changed at byte {place.offset} while it was open",
                where=str(self.path),
                remedy="start the command again: opening the store repairs it",
            )
        return entry

    def entries(self, start: Mark = START) -> Iterator[tuple[Entry, Mark]]:
        """All good entries behind `start`, each with the mark behind it."""
        end = start
        for line in self._lines(start.offset):
            end = end.after(line)
            if (entry := Entry.read(line)) is not None:
                yield entry, end

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _lines(self, start: int = 0) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(start)
            yield from file


def replace(path: Path, entries: Iterable[Entry]) -> Path | None:
    """Writes a new journal in the place of the one at `path`; the path returned is where the old one is kept."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with fresh.open("wb") as file:
        file.writelines(entry.line for entry in entries)
        file.flush()
        os.fsync(file.fileno())
    kept = None
    if path.exists() and path.stat().st_size:
        kept = corrupt_name(path)
        shutil.copy2(path, kept)  # a copy, not a move: at no moment is there no journal
    fresh.replace(path)
    sync_folder(path.parent)
    return kept


def corrupt_name(path: Path) -> Path:
    """The first free `NAME.corrupt.N`."""
    number = 1
    while (name := path.with_name(f"{path.name}.corrupt.{number}")).exists():
        number += 1
    return name


def sync_folder(folder: Path) -> None:
    """Makes the folder's file names durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(file: int, content: bytes) -> None:
    """`os.write` until all is written: it may write less than it is given when the disk fills up."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def write_failed(path: Path, failure: OSError) -> PollexError:
    """The error that says why the store can't be written."""
    if failure.errno in NO_ROOM:
        return StoreFull(f"disk full at {path}", remedy="make room, then resume the run")
    if isinstance(failure, PermissionError | FileExistsError | NotADirectoryError) or failure.errno == errno.EROFS:
        return WrongUse(
            f"the store can't be written: {failure.strerror}",
            where=str(path),
            remedy="give a folder that can be written with --store",
        )
    return StoreDamaged(
        f"can't be written: {failure.strerror}", where=str(path), remedy="check the disk, then resume the run"
    )
