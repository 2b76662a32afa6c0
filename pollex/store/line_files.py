"""Files of lines beside the database: what was paid for, and what people said.

They are appended inside the database's write transaction, so a line is on the disk before its row can be read, and two
processes never append at once. The database remembers how long each file was. One that is longer holds lines whose
transaction was killed: they are taken in. One that is shorter was cut or removed: it is written anew from the database.
A line is a JSON object whose first member is the CRC-32 of the others.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.errors import PollexError, StoreDamaged, StoreFull, WrongUse
from pollex.store.tables import packed, unpacked

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_LINE = re.compile(r'\{"crc":"([0-9a-f]{8})",(.*)', re.DOTALL)


def line_of(values: dict[str, Any]) -> str:
    """Return the values as a line, without its end."""
    body = packed(values)[1:]
    return f'{{"crc":"{zlib.crc32(body.encode()):08x}",{body}'


def read_line(line: str) -> dict[str, Any] | None:
    """Return the values of a line; None where it was damaged."""
    match = _LINE.fullmatch(line)
    if match is None or zlib.crc32(match[2].encode("utf-8", "surrogatepass")) != int(match[1], 16):
        return None
    values: dict[str, Any] = unpacked("{" + match[2])
    return values


@dataclass(frozen=True)
class LineFile:
    """One file of lines.

    Attributes:
        kept: Statement that puts a line into the database.
        values: What the statement takes of a line's values, and the line.
        lines: All lines that the database holds, in order.
    """

    name: str
    kept: str
    values: Callable[[Mapping[str, Any], str], list[Any]]
    lines: Callable[[sqlite3.Connection], Iterable[str]]

    def append(self, folder: Path, connection: sqlite3.Connection, lines: Iterable[str]) -> None:
        """Write lines behind those that are there, flushed to the disk.

        Raises:
            StoreFull: The disk has no room; the file is as it was.
        """
        path, size = folder / self.name, self._size(connection)
        try:
            with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "wb", buffering=0) as file:
                try:
                    end = size + write_all(file.fileno(), "".join(f"{line}\n" for line in lines).encode())
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(size)
                    raise
        except OSError as failure:
            raise write_failed(path, failure) from failure
        self._remember(connection, end)

    def catch_up(self, folder: Path, connection: sqlite3.Connection) -> str:
        """Bring database and file in line inside a write transaction; the sentence returned is for people."""
        path = folder / self.name
        known, size = self._size(connection), path.stat().st_size if path.exists() else 0
        if size > known:
            return self._take_in(path, connection, known)
        if size < known:
            return self._write_anew(path, connection)
        return ""

    def _take_in(self, path: Path, connection: sqlite3.Connection, known: int) -> str:
        taken = damaged = 0
        end = known
        for line in _lines_from(path, known):
            if not line.endswith(b"\n"):
                os.truncate(path, end)
                break
            end += len(line)
            text = line[:-1].decode("utf-8", "replace")
            values = read_line(text)
            damaged += values is None
            if values is not None:
                connection.execute(self.kept, self.values(values, text))
                taken += 1
        self._remember(connection, end)
        lost = f"; {damaged} damaged lines were passed over" if damaged else ""
        return f"{taken} lines of {self.name} were taken into the database{lost}" if taken or damaged else ""

    def _write_anew(self, path: Path, connection: sqlite3.Connection) -> str:
        draft = path.with_name(f".{path.name}.draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(f"{line}\n".encode() for line in self.lines(connection))
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        if path.exists():
            path.rename(aside(path))
        draft.replace(path)
        self._remember(connection, end)
        return f"{self.name} had been cut or removed: written anew from the database"

    def _size(self, connection: sqlite3.Connection) -> int:
        found = connection.execute("SELECT size FROM line_files WHERE name = ?", [self.name]).fetchone()
        return int(found[0]) if found else 0

    def _remember(self, connection: sqlite3.Connection, size: int) -> None:
        connection.execute("INSERT OR REPLACE INTO line_files VALUES (?, ?)", [self.name, size])


REPLY_KEPT = (
    "INSERT INTO calls (key, attempt, run, stage, item, sent, ended, outcome, reply) VALUES (?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT (key, attempt) DO UPDATE SET ended = excluded.ended, outcome = excluded.outcome, "
    "reply = excluded.reply"
)
_LABEL = ("annotator", "text_hash", "conversation", "run", "question", "value", "source", "drawn", "id", "time")
LABEL_KEPT = f"INSERT OR IGNORE INTO labels ({', '.join(_LABEL)}, line) VALUES ({', '.join('?' * 11)})"


def of_reply(values: Mapping[str, Any], line: str) -> list[Any]:
    """Return what `REPLY_KEPT` keeps of a line."""
    about = (values.get(name) for name in ("key", "attempt", "run", "stage", "item", "sent", "ended"))
    return [*about, str(values["outcome"].get("kind", "")), line]


def of_label(values: Mapping[str, Any], line: str) -> list[Any]:
    """Return what `LABEL_KEPT` keeps of a line."""
    return [*(values.get(name) for name in _LABEL), line]


def _rows_of(sql: str) -> Callable[[sqlite3.Connection], Iterator[str]]:
    return lambda connection: (row[0] for row in connection.execute(sql))


REPLIES = LineFile(
    "replies.jsonl",
    REPLY_KEPT,
    of_reply,
    _rows_of("SELECT reply FROM calls WHERE reply IS NOT NULL ORDER BY ended, rowid"),
)
LABELS = LineFile("labels.jsonl", LABEL_KEPT, of_label, _rows_of("SELECT line FROM labels ORDER BY rowid"))


def aside(path: Path) -> Path:
    """Return the first free `NAME.damaged.N`."""
    number = 1
    while (name := path.with_name(f"{path.name}.damaged.{number}")).exists():
        number += 1
    return name


def write_all(file: int, content: bytes) -> int:
    """Write everything: `os.write` may write less than it is given when the disk fills up."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    return len(content)


def write_failed(path: Path, failure: OSError) -> PollexError:
    """Return the error that says why the store can't be written."""
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


def _lines_from(path: Path, start: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        yield from file
