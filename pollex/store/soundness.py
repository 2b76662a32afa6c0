"""Whether a store is as pollex writes it: who handed it on, or a disk, may have changed anything in it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from pollex.errors import PollexError, StoreDamaged
from pollex.rooms import list_hooks
from pollex.store.columns import (
    RUNS_FOLDER_NAME,
    TEXTS_FOLDER_NAME,
    explain_odd_columns,
    explain_unreadable_part,
    list_parts_of_folder,
)
from pollex.store.database import DATABASE_FILE_NAME, add_tables_of_rooms, create_missing_tables
from pollex.store.hooks import StoreTable
from pollex.store.runs import read_run_rows
from pollex.store.tables import SpanRow, make_damage_error, read_checked_line

SQLITE_TYPES_BY_COLUMN_TYPE = {
    "TEXT": ("text", "null"),
    "INTEGER": ("integer", "null"),
    "REAL": ("real", "integer", "null"),
}
"""What SQLite may have in a column of each type, though it takes anything."""
TIME_COLUMNS = ("started", "finished", "time", "beat", "sent", "ended", "due")
"""Columns of moments: ISO 8601, or empty."""
ISO_TIME_GLOB_PATTERN = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"
JSON_OBJECT_COLUMNS = ("arguments", "fingerprint", "versions")
JSON_LIST_COLUMNS = ("roles", "inputs", "outputs")
"""Columns with JSON objects and lists."""
PROGRESS_TABLE_NAME = "progress"
"""The table whose payload is a JSON object; elsewhere it is any JSON, but where a room says otherwise."""


REQUIRED_SPAN_COLUMNS = frozenset(
    column.name for column in fields(SpanRow) if "None" not in str(column.type)
)


class OpenStore(Protocol):
    """A store that is open."""

    folder: Path

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, object]]:
        """Return the rows of a query."""

    def value(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first value of a query."""


def check_whole_store(store: OpenStore) -> None:
    """Read all of a store: the database, every reply and result in it, every part.

    Raises:
        StoreDamaged: Something isn't as pollex writes it.
    """
    where = str(store.folder / DATABASE_FILE_NAME)
    if (verdict := store.value("PRAGMA integrity_check(1)")) != "ok":
        raise make_damage_error(where, verdict.splitlines()[-1])

    for table, column, condition in iterate_column_conditions():
        has_table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        if store.rows(has_table, [table]) and store.value(
            f"SELECT count(*) FROM {table} WHERE NOT ({condition})"
        ):
            raise make_damage_error(where, f"{column} of {table} has what pollex doesn't write")

    # runs are read as everything reads them, replies and results by their checksums
    read_run_rows(store.rows("SELECT * FROM runs"))
    for table in ("calls", "facts"):
        for row in store.rows(f"SELECT * FROM {table}"):
            if not is_row_unchanged(table, row):
                raise make_damage_error(
                    where, f"{DESCRIPTION_BY_CHECKED_TABLE[table]} were changed"
                )

    for folder in (store.folder / TEXTS_FOLDER_NAME, *(store.folder / RUNS_FOLDER_NAME).glob("*")):
        for part in list_parts_of_folder(folder):
            if why := explain_unreadable_part(part.path) or explain_odd_columns(part):
                raise make_damage_error(str(part.path), why)


DESCRIPTION_BY_CHECKED_TABLE = {"calls": "calls", "facts": "results of runs"}


def iterate_column_conditions() -> Iterator[tuple[str, str, str]]:
    """Yield tables and columns of the database, with what holds of each value in them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as plain:
        create_missing_tables(plain)
        add_tables_of_rooms(plain, read_only=False)
        listed = plain.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in listed:
            for column, condition in iterate_table_conditions(plain, table):
                yield table, column, condition


def iterate_table_conditions(database: sqlite3.Connection, table: str) -> Iterator[tuple[str, str]]:
    """Yield the columns of a table, with what holds of each value in them."""
    objects = {(PROGRESS_TABLE_NAME, "payload")}
    for room_table in list_hooks(StoreTable):
        objects.update((room_table.kind.table, column) for column in room_table.objects)

    for _, name, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
        column = f'"{name}"'
        types = ", ".join(
            map(repr, SQLITE_TYPES_BY_COLUMN_TYPE.get(kind, SQLITE_TYPES_BY_COLUMN_TYPE["TEXT"]))
        )
        yield name, f"typeof({column}) IN ({types})"
        if name in TIME_COLUMNS:
            is_moment = (
                f"{column} GLOB '{ISO_TIME_GLOB_PATTERN}' AND julianday({column}) IS NOT NULL"
            )
            yield name, f"coalesce({column}, '') = '' OR ({is_moment})"
        if table == SpanRow.table and name in REQUIRED_SPAN_COLUMNS:
            yield name, f"{column} IS NOT NULL"

        shape = "array" if name in JSON_LIST_COLUMNS else ""
        if name in JSON_OBJECT_COLUMNS or (table, name) in objects:
            shape = "object"
        if shape:
            has_shape = f"json_valid({column}) AND json_type({column}) = '{shape}'"
            yield name, f"coalesce({column}, '') = '' OR ({has_shape})"


def is_row_unchanged(table: str, row: Mapping[str, object]) -> bool:
    """Return whether a reply or a result is as it was written, by its checksum."""
    if table == "facts":
        payload = str(row["payload"]).encode("utf-8", "surrogatepass")
        return bool(row["crc"] == zlib.crc32(payload))
    if table == "calls" and row["reply"] is not None:
        values = read_checked_line(row["reply"]) if isinstance(row["reply"], str) else None
        return values is not None and bool(values.get("key") == row["key"])
    return True


def find_damage_behind_error(store: OpenStore, error: BaseException | None) -> StoreDamaged | None:
    """Return the damage of a store in which something unexpected came up; None where it is sound."""
    # what says itself what was wrong, and what has nothing to do with the store, stays as it is
    if not isinstance(error, Exception) or isinstance(error, PollexError | OSError | MemoryError):
        return None
    try:
        check_whole_store(store)
    except StoreDamaged as damage:
        return damage
    except Exception:  # it can't even be looked through, which the first error says as well
        return None

    return None
