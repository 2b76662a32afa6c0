"""Looking a store through for damage; making its database anew from what can be read of it, and from its backup.

So is a database of an earlier pollex brought over, whose replies, labels and results of runs stood
in files, too.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Set
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from pollex.errors import StoreDamaged, WrongUse
from pollex.store.columns import (
    RUNS_FOLDER_NAME,
    TEXTS_FOLDER_NAME,
    explain_odd_columns,
    explain_unreadable_part,
    list_parts_of_folder,
)
from pollex.store.database import (
    BACKUP_FILE_NAME,
    DATABASE_FILE_NAME,
    LIST_TABLES_QUERY,
    SCHEMA_VERSION,
    Database,
    require_plain_tables,
)
from pollex.store.folder import find_free_damaged_name, make_write_error, require_plain_store_files
from pollex.store.forgetting import require_idle_store
from pollex.store.ledger import make_reply_change
from pollex.store.runs import ALL_RUNS_QUERY, Run, make_run_statement
from pollex.store.soundness import is_row_unchanged, iterate_table_conditions
from pollex.store.store import Store, get_size, has_files_of_removed_store
from pollex.store.tables import AnswerRow, FactRow, LabelRow, ScoreRow, read_checked_line
from pollex.store.writer import make_row_change

TABLES_WITH_CHANGING_ROWS = {"calls", "progress", "batches"}
"""Tables whose rows change after a run's end: the database knows better than its backup."""

CONTENT_DESCRIPTION_BY_TABLE = {
    "annotators": "guests' links",
    "sheets": "comments of labels",
    "requests": "prompts",
    "facts": "results of runs",
    "originals": "what placeholders stand for",
    "batched": "calls in providers' batches",
}
"""What a table holds, where its name doesn't say it."""

ROWS_NOT_TAKEN_OVER_NOTE = "with values that pollex doesn't write stand in the old file alone"
"""Ends what is told of rows that weren't taken over."""

_SQL_NAME_PATTERN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PLAIN_CREATE_TABLE_PATTERN = re.compile(r"CREATE TABLE \w+ \([\w\s,()]*\)", re.ASCII)
ERRORS_OF_MALFORMED_LINE = (KeyError, TypeError, ValueError, AttributeError, sqlite3.Error)
"""What comes of a line that has other fields, or other values, than pollex writes."""

EARLIER_REPLIES_FILE_NAME, EARLIER_LABELS_FILE_NAME, EARLIER_FACTS_FILE_NAME = (
    EARLIER_FILE_NAMES
) = ("replies.jsonl", "labels.jsonl", "facts.jsonl")
"""Files of lines beside the database of an earlier pollex."""

MAX_ROW_NUMBERS_TRIED_BEHIND_DAMAGE = 1 << 40
"""Row numbers that are tried behind a place that can't be read."""


def rebuild_store(folder: Path) -> list[str]:
    """Make the database anew, keep the old files beside it, set unreadable parts aside; return what was done and lost.

    Raises:
        StoreBusy: A run is running in the store.
        WrongUse: There is no store.
    """
    path = folder / DATABASE_FILE_NAME
    new = folder / f"{DATABASE_FILE_NAME}.new"
    draft = folder / f".{DATABASE_FILE_NAME}.draft"

    if not has_files_of_removed_store(folder) and not any(
        (folder / name).exists() for name in (DATABASE_FILE_NAME, *EARLIER_FILE_NAMES)
    ):
        raise WrongUse(
            "there is no store here",
            where=str(folder),
            hint="name its folder",
            option="store",
        )

    require_plain_store_files(folder)
    require_idle_store(folder)
    schema = _read_schema_version(path)

    # the new database is complete before the old files get other names
    lost = list[str]()
    try:
        if not new.exists():  # else the last one was stopped when it was done but for the names
            draft.unlink(missing_ok=True)
            lost = _rebuild_database(draft, folder, earlier=schema < SCHEMA_VERSION)
            draft.replace(new)

        done = []
        for name, new_name in _set_old_files_aside(folder, earlier=schema < SCHEMA_VERSION):
            done.append(f"{name} is kept as {new_name}")

        new.replace(path)
    except OSError as failure:
        raise make_write_error(path, failure) from failure

    # open it, which checks it, and count what it has
    with Store.open(folder) as store:
        numbers = {}
        for table in ("labels", "runs"):
            numbers[table] = store.value(f"SELECT count(*) FROM {table}")

        contents = (
            f"{store.paid} paid answers, {numbers['labels']} labels and {numbers['runs']} runs"
        )
        store.backup()

    return [
        *done,
        *_set_unreadable_parts_aside(folder),
        f"the new database has {contents}",
        *lost,
    ]


def _read_schema_version(path: Path) -> int:
    """Return the version of a database's tables; this one's where it lost them, or can't be read."""
    if not get_size(path):
        return SCHEMA_VERSION

    try:
        with closing(_open_database_for_reading(path)) as source:
            return int(source.execute("PRAGMA user_version").fetchone()[0]) or SCHEMA_VERSION
    except sqlite3.Error:
        return SCHEMA_VERSION


def _rebuild_database(draft: Path, folder: Path, *, earlier: bool) -> list[str]:
    """Make a database of what can be read of the old one, its backup, and earlier files; return what is told of it.

    Args:
        earlier: Whether the old one is of an earlier pollex, which may have had other tables.
    """
    database = Database(draft)
    lines = []
    with closing(database), database.transaction() as connection:
        # tables that nobody here knows are those of a room that isn't installed
        if not earlier and (strange := _add_strange_tables(connection, folder)):
            lines.append(f"{', '.join(strange)}: taken over for a room that isn't installed here")

        for table in _list_tables(connection):
            lines += _fill_table_from_sources(table, connection, folder)

        if odd_lines := _import_files_of_earlier_version(folder, connection):
            lines.append(f"lines of earlier files: {odd_lines} {ROWS_NOT_TAKEN_OVER_NOTE}")

    return lines


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    """List the tables of a database by their names, without SQLite's own."""
    listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return sorted(name for (name,) in listed if not name.startswith("sqlite_"))


def _add_strange_tables(connection: sqlite3.Connection, folder: Path) -> list[str]:
    """Add the tables that only the old database or its backup has, without rows; return their names."""
    known = set(_list_tables(connection))
    added: list[str] = []
    for path in (folder / DATABASE_FILE_NAME, folder / BACKUP_FILE_NAME):
        # what can't be read, or does something by itself, isn't taken over
        with suppress(sqlite3.Error, UnicodeDecodeError, StoreDamaged):
            added += _add_tables_of_database(path, known | {*added}, connection)

    return added


def _add_tables_of_database(
    path: Path, known: Set[str], connection: sqlite3.Connection
) -> list[str]:
    """Add the tables of a file beside known ones, with their indices; return their names."""
    if not path.exists():
        return []

    with closing(_open_database_for_reading(path)) as source:
        require_plain_tables(source.execute(LIST_TABLES_QUERY).fetchall(), path)
        listed = source.execute(
            "SELECT type, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC"
        ).fetchall()

    # tables come before their indices
    names = []
    for kind, name, sql in listed:
        if kind == "index" and name in names:
            connection.execute(sql)
        elif kind == "table" and name not in known and _is_plain_table_definition(name, sql):
            connection.execute(sql)
            names.append(name)

    return names


def _is_plain_table_definition(table: str, sql: str) -> bool:
    """Return whether a table is made as those of rooms are: with a plain name, plain columns and numbers of rows."""
    return (
        _PLAIN_CREATE_TABLE_PATTERN.fullmatch(sql) is not None
        and _SQL_NAME_PATTERN.fullmatch(table) is not None
    )


def _fill_table_from_sources(
    table: str,
    connection: sqlite3.Connection,
    folder: Path,
) -> list[str]:
    """Copy a table from where it is best, and then what is missing from elsewhere; return what is lost or left."""
    places = [folder / DATABASE_FILE_NAME, folder / BACKUP_FILE_NAME]
    name = CONTENT_DESCRIPTION_BY_TABLE.get(table, table.replace("_", " "))
    missed = set[int | None]()
    odd = set[int]()
    for path in places if table in TABLES_WITH_CHANGING_ROWS else reversed(places):
        if path.exists():
            missed.update(_copy_readable_rows(table, path, connection))
            # before the next place, which may have the same rows as pollex wrote them
            odd.update(_remove_odd_rows(table, connection))

    # rows that no place could give
    copied = set[int]()
    if missed or odd:
        copied = {rowid for (rowid,) in connection.execute(f"SELECT rowid FROM {table}")}

    lines = []
    if left := len(odd - copied):
        lines.append(f"{name}: {left} {ROWS_NOT_TAKEN_OVER_NOTE}")
    if gone := len(missed - copied - odd - {None}):
        lines.append(
            f"{name}: {gone} were lost at most, as many as can't be read and have no copy in the backup"
        )
    elif None in missed:
        lines.append(
            f"{name}: what the end of the file had is lost, but for the backup of the last run"
        )

    return lines


def _remove_odd_rows(table: str, connection: sqlite3.Connection) -> set[int]:
    """Remove the rows that reading would refuse; return their numbers."""
    conditions = []
    for _, condition in iterate_table_conditions(connection, table):
        conditions.append(f"({condition})")

    listed = connection.execute(
        f"SELECT rowid FROM {table} WHERE NOT ({' AND '.join(conditions)})"
    ).fetchall()
    odd = {rowid for (rowid,) in listed}
    # runs are read as everything reads them
    if table == RUNS_FOLDER_NAME:
        for rowid, row in _read_stored_runs(connection):
            try:
                Run.read(row)
            except StoreDamaged:
                odd.add(rowid)

    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(rowid,) for rowid in odd])
    return odd


def _read_stored_runs(connection: sqlite3.Connection) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows of runs by their numbers."""
    cursor = connection.execute(ALL_RUNS_QUERY.replace("SELECT ", "SELECT rowid, ", 1))
    names = [column[0] for column in cursor.description]
    for row in cursor.fetchall():
        yield row[0], dict(zip(names[1:], row[1:], strict=True))


def _copy_readable_rows(table: str, path: Path, into: sqlite3.Connection) -> Iterator[int | None]:
    """Copy the rows that can be read; yield the numbers of others, None where it isn't known which there are."""
    try:
        with closing(_open_database_for_reading(path)) as source:
            require_plain_tables(source.execute(LIST_TABLES_QUERY).fetchall(), path)

            # an earlier pollex may lack columns, or have others
            def columns_of(database: sqlite3.Connection) -> list[str]:
                rows = database.execute(f'PRAGMA table_info("{table}")')
                return [column[1] for column in rows]

            theirs = columns_of(source)
            columns = [column for column in columns_of(into) if column in theirs]
            quoted = [f'"{column}"' for column in columns]
            named = ", ".join(["rowid", *quoted])
            places = ", ".join("?" * (1 + len(columns)))
            sql = f"INSERT OR IGNORE INTO {table} ({named}) VALUES ({places})"
            for row in _iterate_readable_rows(source, table, ", ".join(quoted)) if columns else ():
                if not isinstance(row, tuple):
                    yield row
                elif is_row_unchanged(table, dict(zip(columns, row[1:], strict=True))):
                    into.execute(sql, row)
                else:
                    yield row[0]
    except (sqlite3.Error, UnicodeDecodeError):
        yield None


def _iterate_readable_rows(
    source: sqlite3.Connection,
    table: str,
    columns: str,
) -> Iterator[tuple[Any, ...] | int | None]:
    """Yield a table's rows with their numbers; the number alone of what can't be read, None if it was the end."""
    # an earlier pollex kept it without numbers
    number = "row_number() OVER ()" if table == "batched" else "rowid"
    sql = f"SELECT * FROM (SELECT {number} AS number, {columns} FROM {table}) WHERE number > ? ORDER BY number"
    last = 0
    step = 0
    # behind a place that can't be read, numbers are tried in growing steps
    while step < MAX_ROW_NUMBERS_TRIED_BEHIND_DAMAGE:
        try:
            for row in source.execute(sql, [last + step]):
                yield from range(last + 1, row[0] if step else 0)
                last = row[0]
                step = 0
                yield row

            return
        except (sqlite3.Error, UnicodeDecodeError):
            step = 2 * step + 1

    yield None


def _open_database_for_reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _import_files_of_earlier_version(folder: Path, connection: sqlite3.Connection) -> int:
    """Take in what an earlier pollex kept in files beside its database, as far as the database lacks it.

    Returns:
        How many lines say something else than pollex wrote.
    """
    odd = 0
    # paid replies, then results where the files have more of them, labels and runs
    for values in _iterate_json_lines(folder / EARLIER_REPLIES_FILE_NAME):
        try:
            make_reply_change(values).apply(connection)
        except ERRORS_OF_MALFORMED_LINE:
            odd += 1

    facts = []
    for values in _iterate_json_lines(folder / EARLIER_FACTS_FILE_NAME):
        try:
            facts.append(FactRow(**values))
        except ERRORS_OF_MALFORMED_LINE:
            odd += 1

    if len(facts) > connection.execute("SELECT count(*) FROM facts").fetchone()[0]:
        connection.execute("DELETE FROM facts")
        for fact in facts:
            make_row_change(fact).apply(connection)

    labels = {label for (label,) in connection.execute("SELECT id FROM labels")}
    for values in _iterate_json_lines(folder / EARLIER_LABELS_FILE_NAME):
        try:
            if values["id"] not in labels:
                make_row_change(LabelRow(**values)).apply(connection)
        except ERRORS_OF_MALFORMED_LINE:
            odd += 1

    runs = {run for (run,) in connection.execute("SELECT id FROM runs")}
    for path in sorted((folder / RUNS_FOLDER_NAME).glob("*/run.json")):
        if path.parent.name not in runs:
            with suppress(ValueError):
                connection.execute(*make_run_statement(Run.model_validate_json(path.read_bytes())))

    for table in ("calls", "facts", "labels", "runs"):
        odd += len(_remove_odd_rows(table, connection))

    return odd


def _iterate_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            yield from filter(None, (read_checked_line(line.removesuffix("\n")) for line in file))


def _set_old_files_aside(folder: Path, *, earlier: bool) -> Iterator[tuple[str, str]]:
    """Give the old files other names, but leave the database where it is; yield both names of each."""
    why = "earlier" if earlier else "damaged"
    if (folder / DATABASE_FILE_NAME).exists():
        new_path = find_free_damaged_name(folder / DATABASE_FILE_NAME, why)
        os.link(folder / DATABASE_FILE_NAME, new_path)
        with suppress(FileNotFoundError):  # SQLite would fold it into the new one
            (folder / f"{DATABASE_FILE_NAME}-wal").rename(
                new_path.with_name(f"{new_path.name}-wal")
            )
        (folder / f"{DATABASE_FILE_NAME}-shm").unlink(missing_ok=True)
        yield DATABASE_FILE_NAME, new_path.name

    for name in EARLIER_FILE_NAMES:
        if (folder / name).exists():
            (folder / name).rename(new_path := find_free_damaged_name(folder / name, why))
            yield name, new_path.name


def _set_unreadable_parts_aside(folder: Path) -> list[str]:
    """Set unreadable parts aside, and scores without all answers, which a resume restores."""
    done = []
    for pile in (folder / TEXTS_FOLDER_NAME, *(folder / RUNS_FOLDER_NAME).glob("*")):
        parts = list_parts_of_folder(pile)
        # scores without their answers go with them
        bad = set()
        for part in parts:
            if explain_unreadable_part(part.path) or explain_odd_columns(part):
                bad.add(part)

        if any(part.pile.name == AnswerRow.table for part in bad):
            bad |= {part for part in parts if part.pile.name == ScoreRow.table}
        for part in sorted(bad):
            new_path = find_free_damaged_name(part.path)
            part.path.rename(new_path)
            done.append(
                f"{part.path.name} of {pile.name} was set aside as {new_path.name}: a resume makes it anew"
            )

    return done
