"""Files of lines next to the database: replies, labels, and results of runs.

They are appended inside the database's write transaction, so a line is on the disk before its row can be read, and two
processes never append at once. The database remembers how long each file was. One that is longer holds lines whose
transaction was killed: they are taken in. One that is shorter was cut or removed: it is written anew from the database.
A line is a JSON object whose first member is the CRC-32 of the others.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from pollex.store.folder import aside, not_writable, write_failed
from pollex.store.tables import ColumnRow, FactRow, LabelRow, Row, insert_into, insert_of, packed, unpacked

_LINE = re.compile(r'\{"crc":"([0-9a-f]{8})",(.*)', re.DOTALL)


def line_of(values: Mapping[str, Any]) -> str:
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
        kept: Return the statement that puts a line's values into the database, and its parameters.
        lines: Return all lines that the database holds, in order.
        mend: Statement that completes what a killed transaction had beside the lines that are taken in.
    """

    name: str
    kept: Callable[[Mapping[str, Any], str], tuple[str, list[Any]]]
    lines: Callable[[sqlite3.Connection], Iterator[str]]
    mend: str = ""

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
        """Synchronize database and file in a write transaction; return a message or nothing."""
        path = folder / self.name
        if path.exists() and not path.is_file():  # a device takes lines, or refuses them, and keeps none
            raise not_writable(path, "it is no file")
        known, size = self._size(connection), path.stat().st_size if path.exists() else 0
        if size > known:
            return self._take_in(path, connection, known)
        return self._write_anew(path, connection) if size < known else ""

    def _take_in(self, path: Path, connection: sqlite3.Connection, end: int) -> str:
        taken = damaged = 0
        with path.open("rb") as file:
            file.seek(end)
            for line in file:
                if not line.endswith(b"\n"):
                    os.truncate(path, end)
                    break
                end += len(line)
                text = line[:-1].decode("utf-8", "replace")
                if (values := read_line(text)) is None:
                    damaged += 1
                else:
                    connection.execute(*self.kept(values, text))
                    taken += 1
        if taken and self.mend:
            connection.execute(self.mend)
        self._remember(connection, end)
        lost = f"; {damaged} damaged lines were passed over" if damaged else ""
        return f"{taken} lines of {self.name} were taken into the database{lost}" if taken or damaged else ""

    def rewrite(self, folder: Path, connection: sqlite3.Connection) -> None:
        """Write the file anew with what the database holds, in a write transaction; the old one is gone."""
        if (folder / self.name).exists():
            self._write_anew(folder / self.name, connection, keep=False)

    def _write_anew(self, path: Path, connection: sqlite3.Connection, *, keep: bool = True) -> str:
        draft = path.with_name(f".{path.name}.draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(f"{line}\n".encode() for line in self.lines(connection))
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        if keep and path.exists():
            path.rename(aside(path))
        draft.replace(path)
        self._remember(connection, end)
        return f"{self.name} had been cut or removed: written anew from the database"

    def _size(self, connection: sqlite3.Connection) -> int:
        found = connection.execute("SELECT size FROM line_files WHERE name = ?", [self.name]).fetchone()
        return int(found[0]) if found else 0

    def _remember(self, connection: sqlite3.Connection, size: int) -> None:
        connection.execute("INSERT OR REPLACE INTO line_files VALUES (?, ?)", [self.name, size])


def write_all(file: int, content: bytes) -> int:
    """Write everything, since `os.write` may write less when the disk fills up."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    return len(content)


_REPLY = (
    "INSERT INTO calls (key, attempt, run, stage, item, sent, ended, outcome, reply) VALUES (?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT (key, attempt) DO UPDATE SET ended = excluded.ended, outcome = excluded.outcome, "
    "reply = excluded.reply"
)


def _reply(values: Mapping[str, Any], line: str) -> tuple[str, list[Any]]:
    about = (values.get(name) for name in ("key", "attempt", "run", "stage", "item", "sent", "ended"))
    return _REPLY, [*about, str(values["outcome"].get("kind", "")), line]


def _replies(connection: sqlite3.Connection) -> Iterator[str]:
    for (line,) in connection.execute("SELECT reply FROM calls WHERE reply IS NOT NULL ORDER BY ended, rowid"):
        yield line


_SHEETS = """
    INSERT OR IGNORE INTO sheets (label, lease, queue, skip, comment, replaces)
    SELECT l.id, e.id, e.queue, CASE l.value WHEN 'null' THEN 'skipped' ELSE '' END, '', ''
    FROM labels AS l JOIN leases AS e ON e.annotator = l.annotator AND e.text_hash = l.text_hash AND e.drawn = l.drawn
        AND l.time BETWEEN e.time AND e.until
    WHERE l.source = 'person' AND l.id NOT IN (SELECT label FROM sheets)
"""
"""A label without its sheet would have the same person asked again."""


def _of_rows(name: str, kind: type[Row], mend: str = "") -> LineFile:
    """Return the file of lines with the rows of one table."""
    columns = [each.name for each in fields(kind)]

    def kept(values: Mapping[str, Any], _line: str) -> tuple[str, list[Any]]:
        row = kind(**{column: values[column] for column in columns})
        return insert_of(row, "OR IGNORE"), row.values

    def lines(connection: sqlite3.Connection) -> Iterator[str]:
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {kind.table} ORDER BY rowid"):
            yield line_of(dict(zip(columns, row, strict=True)))

    return LineFile(name, kept, lines, mend)


REPLIES = LineFile("replies.jsonl", _reply, _replies)
LABELS = _of_rows("labels.jsonl", LabelRow, _SHEETS)
FACTS = _of_rows("facts.jsonl", FactRow)
FILES = (REPLIES, LABELS, FACTS)


class Change(NamedTuple):
    """A change of the database, with an optional line for a file."""

    sql: str
    values: Sequence[Any]
    line: str = ""
    file: LineFile | None = None

    def apply(self, connection: sqlite3.Connection) -> None:
        """Make it, in a write transaction."""
        connection.execute(self.sql, self.values)


class Line(NamedTuple):
    """A row for a Parquet file, as JSON."""

    kind: type[ColumnRow]
    run: str
    text: str


def queued(rows: Iterable[Row | Line]) -> tuple[list[Change | Line], int]:
    """Return facts as they are queued, and about how many bytes they take."""
    queued = [_queueable(row) for row in rows]
    return queued, sum(len(item.text) if isinstance(item, Line) else 256 for item in queued)


def _queueable(row: Row | Line) -> Change | Line:
    if isinstance(row, Line):
        return row
    if isinstance(row, ColumnRow):
        return Line(type(row), row.run, row.json)
    for file, kind in ((LABELS, LabelRow), (FACTS, FactRow)):
        if isinstance(row, kind):
            values = dict(zip(vars(row), row.values, strict=False))
            line = line_of(values)
            return Change(*file.kept(values, line), line, file)
    parameters = row.values
    return Change(insert_into(row.table, len(parameters)), parameters)
