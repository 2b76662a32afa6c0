"""The DuckDB file: opening it locked down, telling damage from other trouble, and writing batches of rows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from pollex.errors import PollexError, StoreDamaged, StoreFull, WrongUse
from pollex.store.journal import Entry, Mark
from pollex.store.lock import busy
from pollex.store.tables import JOURNALED

FILE = "store.duckdb"
CHUNK = 8 << 20

# Nothing that reaches the database may make it read or write another file, or load code.
LOCKED_DOWN = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
    "memory_limit": "512MB",
    "wal_autocheckpoint": "64MB",
}


# A text is kept once, whoever brings it again.
_ONCE = ("DISTINCT ON (r.text_hash) ", " WHERE r.text_hash NOT IN (SELECT text_hash FROM texts)")


class Damaged(StoreDamaged):
    """The database file, or its write-ahead log, can't be read; recovery mends it."""


class Database:
    """An open database file.

    Raises:
        Damaged: The file is there but can't be read.
        StoreBusy: Another program holds it.
        StoreDamaged: A newer DuckDB wrote it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        require_duckdb()
        self.path = path
        try:
            self._connection = duckdb.connect(str(path), read_only=read_only, config=dict(LOCKED_DOWN))
        except duckdb.Error as failure:
            raise _refusal(path, failure) from failure
        self._inserts: dict[str, tuple[str, str]] = {}

    def close(self) -> None:
        """Closes the file; an instance that has broken down is closed, too."""
        with suppress(duckdb.Error):  # the instance may be gone already; what was committed is in the file
            self._connection.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own, for one thread."""
        return self._connection.cursor()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """What a query gives, a dict a row."""
        with self.cursor() as cursor:
            cursor.execute(sql, list(parameters))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row."""
        with self.cursor() as cursor:
            row = cursor.execute(sql, list(parameters)).fetchone()
        return row[0] if row else None

    def execute(self, sql: str) -> None:
        """Runs a statement that gives nothing."""
        with self.cursor() as cursor:
            cursor.execute(sql)

    def in_transaction(self, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Runs `work` on a cursor: all of it happens, or nothing."""
        with self.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                work(cursor)
                cursor.execute("COMMIT")
            except BaseException:
                _roll_back(cursor)
                raise

    def insert(self, entries: Iterable[Entry], mark: Mark | None = None) -> None:
        """Adds all `entries` and moves the mark, in one transaction."""
        tables: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            tables[entry.table].append(entry.row)

        def work(cursor: duckdb.DuckDBPyConnection) -> None:
            for table, rows in tables.items():
                sql, shape = self._insert_of(table)
                for chunk in _chunks(rows):
                    cursor.execute(sql, ["[" + ",".join(chunk) + "]", shape])
            if mark is not None:
                cursor.execute('UPDATE mark SET "offset" = ?, crc = ?', list(mark))

        self.in_transaction(work)

    @property
    def mark(self) -> Mark:
        """How much of the journal the database holds."""
        (row,) = self.rows("SELECT * FROM mark")
        return Mark(row["offset"], row["crc"])

    def journaled(self) -> list[Entry]:
        """All rows that the journal should hold, too."""
        return [
            Entry(table, row["line"])
            for table in JOURNALED
            for row in self.rows(f'SELECT to_json(t) AS line FROM "{table}" AS t ORDER BY rowid')  # noqa: S608 - our names
        ]

    def counts(self) -> Counter[str]:
        """Rows of the tables that the journal holds, too."""
        return Counter({table: self.value(f'SELECT count(*) FROM "{table}"') for table in JOURNALED})  # noqa: S608

    def check(self) -> None:
        """Reads every block, so that damage shows now.

        Raises:
            Damaged: A block can't be read.
        """
        try:
            for table in self.rows("SELECT table_name AS name FROM duckdb_tables()"):
                self.value(f'SELECT bit_xor(hash(t)) FROM "{table["name"]}" AS t')  # noqa: S608 - our names
        except duckdb.Error as failure:
            raise Damaged(str(failure)) from failure

    def _insert_of(self, table: str) -> tuple[str, str]:
        """The statement that adds rows given as one JSON array, and the shape of the array's items."""
        if table not in self._inserts:
            columns = self.rows(
                "SELECT column_name AS name, data_type AS type FROM duckdb_columns() WHERE table_name = ?", [table]
            )
            names = ", ".join(f'"{column["name"]}"' for column in columns)
            values = ", ".join(f'r."{column["name"]}"' for column in columns)
            shape = ", ".join(f'"{column["name"]}": "{column["type"]}"' for column in columns)
            once, only_new = _ONCE if table == "texts" else ("", "")
            self._inserts[table] = (
                f'INSERT INTO "{table}" ({names}) SELECT {once}{values} FROM '  # noqa: S608 - our own names, values are parameters
                f"(SELECT unnest(from_json(?, ?)) AS r){only_new}",
                f"[{{{shape}}}]",
            )
        return self._inserts[table]


def require_duckdb() -> None:
    """Refuses a DuckDB that is known to show empty tables after a failed checkpoint (all before 2.0).

    Raises:
        WrongUse: An older or a newer, unknown major version is installed.
    """
    if duckdb.__version__.split(".")[0] != "2":
        raise WrongUse(
            f"DuckDB {duckdb.__version__} is installed, and the store needs 2.x",
            remedy="pip install 'duckdb>=2.0,<3'",
        )


def write_error(path: Path, failure: duckdb.Error) -> PollexError:
    """The error that says why a commit failed."""
    if _NO_ROOM.search(str(failure)):
        return StoreFull(f"disk full at {path}", remedy="make room, then resume the run")
    return StoreDamaged(
        f"the database stopped: {_first_line(failure)}",
        where=str(path),
        remedy="resume the run: opening the store again repairs it, and what was acknowledged is safe",
    )


def read_error(path: Path, failure: duckdb.Error) -> PollexError:
    """The error that says why a query failed."""
    return StoreDamaged(
        f"the database can't be read: {_first_line(failure)}",
        where=str(path),
        remedy="start the command again: opening the store repairs it",
    )


_NO_ROOM = re.compile(r"No space left|File too large|quota exceeded|not enough space|max_temp_directory", re.IGNORECASE)


def _refusal(path: Path, failure: duckdb.Error) -> Exception:
    text = str(failure)
    if "Conflicting lock" in text or "Could not set lock" in text:
        holder = re.search(r"PID (\d+)", text)
        return busy(path, holder[1] if holder else "")
    if "version number" in text:
        return StoreDamaged(
            f"a DuckDB that {duckdb.__version__} can't read wrote the store: {_first_line(failure)}",
            where=str(path),
            remedy="install the newer DuckDB; the store was left as it is",
        )
    if "Permission denied" in text or "Read-only file system" in text:
        return WrongUse("the store can't be opened for writing", where=str(path), remedy="check its permissions")
    if _NO_ROOM.search(text):
        return write_error(path, failure)
    return Damaged(_first_line(failure))


def _first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0][:300]


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    with suppress(duckdb.Error):  # a transaction that failed by itself has ended, and one of a dead instance never will
        cursor.execute("ROLLBACK")


def _chunks(rows: Sequence[str]) -> Iterable[list[str]]:
    """Rows in groups of about `CHUNK` bytes: one parameter holds a whole group."""
    chunk: list[str] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row)
        if size > CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
