"""The SQLite file: opening, short transactions, and error messages.

The database's tables. Those of rows have a column for each field of their class.

Times are ISO 8601 in UTC. Columns called payload, arguments, fingerprint, versions, roles, result,
inputs, outputs and value hold JSON.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pollex.errors import PollexError, StoreBusy, StoreDamaged, WrongUse
from pollex.rooms import list_hooks
from pollex.store import tables
from pollex.store.folder import (
    make_full_disk_error,
    make_memory_error,
    make_store_error,
    make_unwritable_error,
    make_write_error,
)
from pollex.store.hooks import StoreTable
from pollex.store.tables import Row, make_damage_error, name_field_type

SCHEMA_VERSION = 10
"""Counted up by whoever changes a table: `repair.rebuild_store` brings older databases over."""

SQL_BY_ROW_TYPE: dict[type[Row], str] = {
    tables.FactRow: "crc INTEGER",
    tables.SpanRow: "",
    tables.LabelRow: "PRIMARY KEY (id)",
    tables.QueueRow: "PRIMARY KEY (id)",
    tables.LeaseRow: "PRIMARY KEY (id)",
    tables.LabelSheetRow: "PRIMARY KEY (label)",
    tables.OriginalRow: "",
    tables.ChosenConversationRow: "PRIMARY KEY (queue, conversation)",
    tables.ReplayRow: "PRIMARY KEY (id)",
    tables.DraftRow: "PRIMARY KEY (id, version)",
    tables.AnnotatorRow: "PRIMARY KEY (id)",
    tables.RevocationRow: "PRIMARY KEY (annotator)",
}
"""What a table has beside its fields: keys, and a checksum."""

CREATE_OTHER_TABLES_SQL = """
    CREATE TABLE runs (id TEXT PRIMARY KEY, number INTEGER UNIQUE, command TEXT, arguments TEXT, fingerprint TEXT,
        versions TEXT, started TEXT, finished TEXT, status TEXT, roles TEXT, result TEXT);
    CREATE TABLE progress (run TEXT PRIMARY KEY, process INTEGER, beat TEXT, payload TEXT);
    CREATE TABLE calls (key TEXT, attempt INTEGER, run TEXT, stage TEXT, item TEXT, sent TEXT, ended TEXT,
        outcome TEXT, reply TEXT, holder TEXT, until REAL, PRIMARY KEY (key, attempt));
    CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT);
    CREATE TABLE batches (digest TEXT PRIMARY KEY, provider TEXT, place TEXT, model TEXT, intended REAL, size INTEGER,
        id TEXT, closed INTEGER DEFAULT 0);
    CREATE TABLE batched (digest TEXT, key TEXT, attempt INTEGER, PRIMARY KEY (digest, key));
    CREATE INDEX calls_of_runs ON calls (run);
    CREATE INDEX facts_of_runs ON facts (run, kind, id);
    CREATE INDEX spans_of_items ON spans (run, item);
    CREATE INDEX labels_of_texts ON labels (text_hash, question);
    CREATE INDEX leases_of_queues ON leases (queue, text_hash);
    CREATE INDEX sheets_of_leases ON sheets (lease);
    CREATE INDEX originals_of_conversations ON originals (conversation);
    CREATE INDEX replays_of_conversations ON replays (run, conversation)
"""

_SQL_TYPE_BY_PYTHON_TYPE = {
    "int": "INTEGER",
    "bool": "INTEGER",
    "float": "REAL",
}


def create_missing_tables(connection: sqlite3.Connection) -> None:
    """Make all tables in a database that has none, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another process may have been quicker
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in [
                *(_make_create_table_sql(kind, more) for kind, more in SQL_BY_ROW_TYPE.items()),
                *CREATE_OTHER_TABLES_SQL.split(";"),
            ]:
                connection.execute(statement)

            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it itself where the disk is full
            connection.execute("ROLLBACK")
        raise


def add_tables_of_rooms(connection: sqlite3.Connection, *, read_only: bool) -> None:
    """Add the tables of rooms that a database lacks; where it is only read, beside it, for this connection alone."""
    listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    present = {name for (name,) in listed}
    missing = []
    for table in list_hooks(StoreTable):
        if table.kind.table not in present:
            missing.append(table)

    if read_only and missing:
        connection.execute("PRAGMA temp_store = MEMORY")

    for table in missing:
        # another process may have been quicker
        connection.execute(
            _make_create_table_sql(
                table.kind,
                table.more,
                "TEMP TABLE" if read_only else "TABLE IF NOT EXISTS",
            )
        )
        if table.index and not read_only:
            connection.execute(f"CREATE INDEX IF NOT EXISTS {table.index}")


def _make_create_table_sql(kind: type[Row], more: str, what: str = "TABLE") -> str:
    columns = []
    for column in fields(kind):
        columns.append(
            f"{column.name} {_SQL_TYPE_BY_PYTHON_TYPE.get(name_field_type(column), 'TEXT')}"
        )

    return f"CREATE {what} {kind.table} ({', '.join([*columns, *filter(None, [more])])})"


DATABASE_FILE_NAME = "store.sqlite"
BACKUP_FILE_NAME = "backup.sqlite"
CHECKPOINTS_FILE_NAME = "checkpoints.sqlite"
"""The state of every run after each node of its graph; a thread is a run."""
LOCK_TIMEOUT_SECONDS, LOCK_TIMEOUT_SECONDS_OF_REQUESTS = 60.0, 15.0
"""Seconds to wait for other processes, whose transactions are short; the second where somebody waits for an answer."""

MAX_FULLY_CHECKED_BYTES = 32 << 20
"""A database up to this size is read whole when it is opened for writing."""

DISK_FULL_ERROR_NAMES = (
    "SQLITE_FULL",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_SHMSIZE",
    "SQLITE_IOERR_SHMMAP",
)
"""Errors of a disk, or a quota, that takes no more."""

DAMAGE_ERROR_NAMES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")
"""Errors of a file that isn't as it was written."""


class SqlStatement(NamedTuple):
    """A statement that changes the database.

    Attributes:
        durable: Whether it is on the disk, not just handed to the system, when its commit returns.
    """

    sql: str
    values: Sequence[object]
    durable: bool = False

    def apply(self, connection: sqlite3.Connection) -> None:
        """Make it, in a write transaction."""
        connection.execute(self.sql, self.values)


class Database:
    """An open database. Any thread may use it: one reads or writes at a time.

    Args:
        read_only: Change nothing; the database must be there.
        may_be_new: Whether a file without tables gets them; else it lost them, and is damaged.
        patience: Seconds to wait for other processes.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        may_be_new: bool = True,
        patience: float = LOCK_TIMEOUT_SECONDS,
    ) -> None:
        self.path = path
        self._turn = threading.RLock()
        with self.trouble():
            self._connection = _connect_to_database(
                path,
                read_only=read_only,
                may_be_new=may_be_new,
                patience=patience,
            )

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Turn errors of SQLite into ours."""
        try:
            yield
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise  # the statement is wrong, not the store
        # A message that quotes what was damaged is no text.
        except (sqlite3.Error, MemoryError, UnicodeDecodeError) as failure:
            raise describe_database_error(self.path, failure) from failure

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, object]]:
        """Return what a query gives, a dict a row."""
        with self._turn, self.trouble():
            cursor = self._connection.execute(sql, parameters)
            names = [column[0] for column in cursor.description or ()]
            rows: list[dict[str, object]] = []
            for row in cursor.fetchall():
                rows.append(dict(zip(names, row, strict=True)))
            return rows

    def each(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
        """Yield what a query gives, a tuple a row: for hundreds of thousands of them."""
        with self._turn, self.trouble():
            yield from self._connection.execute(sql, parameters)

    def value(self, sql: str, parameters: Sequence[object] = ()) -> object:
        """Return the first column of the first row; None when there is no row."""
        with self._turn, self.trouble():
            row = self._connection.execute(sql, parameters).fetchone()
        return row[0] if row else None

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Open a write transaction: all of it happens, or nothing. Other processes wait meanwhile.

        Args:
            durable: Whether it is on the disk when it ends; else a machine that stops may lose it,
                no process does.

        Raises:
            PollexError: The file was removed: what would be written into it then is lost.
        """
        try:
            self.path.stat()
        except OSError as failure:
            raise make_write_error(self.path, failure) from failure

        with self._turn, self.trouble():
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def compact(self) -> None:
        """Write the file anew without what was deleted, and empty the write-ahead log.

        Raises:
            StoreBusy: Another process reads the file as it was, so the log can't be folded into it.
        """
        with self._turn, self.trouble():
            # where it is written anew
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
            self._connection.execute("VACUUM")
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            (busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

        if busy:
            what = "another process reads the store, so what was deleted still stands in its file"
            hint = "end it (`pollex serve`, a notebook), and run the command again"
            raise StoreBusy(what, where=str(self.path.parent), hint=hint)

    def backup(self) -> None:
        """Copy the file as it is now to `BACKUP` beside it, whole or not at all, once the copy was read through.

        Raises:
            StoreDamaged: The copy that is there has more than the file, which lost it.
            PollexError: It can't be written.
        """
        path = self.path.with_name(BACKUP_FILE_NAME)
        # only who forgets conversations makes the file shorter, and removes the backup first
        if lost := self._list_lost_rows(path):
            raise make_damage_error(str(self.path), f"its backup has more {' and '.join(lost)}")

        # of this call alone: another thread may make a backup, too
        draft = path.with_name(f".{BACKUP_FILE_NAME}.{secrets.token_hex(8)}.draft")
        try:
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with (
                self.trouble(),
                closing(
                    sqlite3.connect(_make_database_uri(self.path, read_only=True), uri=True)
                ) as source,
                closing(sqlite3.connect(draft)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                _check_integrity(copy, self.path)

            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as failure:
            raise make_write_error(path, failure) from failure
        finally:
            draft.unlink(missing_ok=True)

    def _list_lost_rows(self, backup: Path) -> list[str]:
        """Return the tables of which a backup has rows that this file lacks; none where it can't be read."""
        if not backup.exists():
            return []

        lost = []
        try:
            with closing(
                sqlite3.connect(_make_database_uri(backup, read_only=True), uri=True)
            ) as copy:
                require_plain_tables(copy.execute(LIST_TABLES_QUERY).fetchall(), backup)
                runs = {run for (run,) in copy.execute("SELECT id FROM runs")}
                if runs - {run for (run,) in self.each("SELECT id FROM runs")}:
                    lost.append("runs")

                for table in ("labels", "calls"):
                    counted = f"SELECT count(*) FROM {table}"
                    if copy.execute(counted).fetchone()[0] > self.value(counted):
                        lost.append(table)
        # a copy that can't be read, or that an earlier pollex made, is no loss
        except (sqlite3.Error, UnicodeDecodeError, StoreDamaged):
            return []

        return lost

    def close(self) -> None:
        """Close it; the last process that does so folds the write-ahead log into the file."""
        with self._turn:
            self._connection.close()


def _connect_to_database(
    path: Path,
    *,
    read_only: bool,
    may_be_new: bool,
    patience: float,
) -> sqlite3.Connection:
    if not read_only and not path.exists():
        # Its log takes over the rights. Never open a file that SQLite has open: closing it drops
        # SQLite's locks.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    # a new file is neither checked nor compared
    fresh = not path.stat().st_size
    connection = sqlite3.connect(
        _make_database_uri(path, read_only=read_only),
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # no query reaches another file
        for pragma in (
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "secure_delete = ON",
            "journal_mode = WAL",
        ):
            if not (read_only and pragma.startswith("journal")):
                connection.execute(f"PRAGMA {pragma}")

        # before anything is read that its tables may compute
        require_plain_tables(connection.execute(LIST_TABLES_QUERY).fetchall(), path)
        if not read_only and not fresh and path.stat().st_size <= MAX_FULLY_CHECKED_BYTES:
            _check_integrity(connection, path)
        schema = _read_schema_version(connection)
        if schema == 0 and not read_only:
            # another process or thread may be making the tables just now: wait until it has
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            schema = _read_schema_version(connection)

        if schema == 0:
            if not may_be_new:
                raise make_damage_error(str(path), "it has no tables any more")
            create_missing_tables(connection)
        elif schema != SCHEMA_VERSION:
            what = f"the store has schema {schema}, and pollex {version('pollex')} knows schema {SCHEMA_VERSION}"
            older = "`pollex doctor --rebuild` brings it over once, and keeps the files as they are"
            newer = "the store was left as it is: install the newer pollex, or give another folder"
            raise WrongUse(
                what,
                where=str(path),
                hint=older if schema < SCHEMA_VERSION else newer,
                option="store",
            )

        add_tables_of_rooms(connection, read_only=read_only)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise

    return connection


def _read_schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the schema; 0 before the tables are made."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


LIST_TABLES_QUERY = "SELECT name, coalesce(sql, '') FROM sqlite_schema"
"""What a database has, and how it was made."""
_LITERAL_DEFAULT_REGEX = re.compile(r"\bDEFAULT\s+(?:'[^']*'|\d+)", re.IGNORECASE)
_COMPUTING_CLAUSE_REGEX = re.compile(
    r"\b(?:CHECK|AS|DEFAULT|COLLATE|REFERENCES|VIRTUAL|VIEW|TRIGGER|WHERE)\b",
    re.IGNORECASE,
)
"""Words of what a database of ours never has: a stranger's view may never end, a trigger may change what nobody asked
for, and a condition or a column that is computed takes as long as they like."""
_CREATE_INDEX_REGEX = re.compile(r"\s*CREATE\s+(?:UNIQUE\s+)?INDEX\b", re.IGNORECASE)


def require_plain_tables(rows: Iterable[Any], path: Path) -> None:
    """Refuse a database that does anything by itself when it is read or written.

    Args:
        rows: What `TABLES` gave.

    Raises:
        StoreDamaged: It does.
    """
    for name, sql in rows:
        of_expressions = _CREATE_INDEX_REGEX.match(sql) and sql.count("(") > 1
        if of_expressions or _COMPUTING_CLAUSE_REGEX.search(_LITERAL_DEFAULT_REGEX.sub("", sql)):
            raise make_damage_error(str(path), f"{name!r} is no table of pollex")


def _make_database_uri(path: Path, *, read_only: bool) -> str:
    address = path.absolute().as_uri()
    if (
        read_only
        and not os.access(path.parent, os.W_OK)
        and not path.with_name(f"{path.name}-wal").exists()
    ):
        return f"{address}?immutable=1"

    return address


def _check_integrity(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise make_damage_error(str(path), verdict.splitlines()[-1])


def describe_database_error(path: Path, failure: Exception) -> PollexError:
    """Return the error that says what happened."""
    # by SQLite's name for it, then by its words
    name = getattr(failure, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusy(
            "another process keeps the store from being written",
            where=str(path.parent),
            hint="wait until it ends, or give another folder",
            option="store",
        )
    if name in DISK_FULL_ERROR_NAMES:
        return make_full_disk_error(path)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return make_unwritable_error(path)

    if str(failure):
        words = str(failure).splitlines()[0]
    else:
        words = name

    if isinstance(failure, MemoryError) or name.startswith("SQLITE_NOMEM"):
        return make_memory_error(path)

    wrong = name.startswith(DAMAGE_ERROR_NAMES) or isinstance(failure, UnicodeDecodeError)
    if (
        wrong
        or re.search("malformed|no such|unsupported|not decode", words)
        or _is_database_unsound(path)
    ):
        return make_damage_error(str(path), words)
    return make_store_error(path, words)


def _is_database_unsound(path: Path) -> bool:
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok")
    except (sqlite3.Error, MemoryError) as failure:
        return getattr(failure, "sqlite_errorname", "").startswith(DAMAGE_ERROR_NAMES)
