"""Looking a store through for damage, and making its database anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from pollex.errors import StoreBusy, WrongUse
from pollex.store.columns import RUNS, TEXTS, all_parts, unreadable
from pollex.store.database import FILE, REMAINS
from pollex.store.folder import aside
from pollex.store.line_files import REPLIES, read_line
from pollex.store.runs import is_worked_on
from pollex.store.store import Store
from pollex.store.tables import AnswerRow, ScoreRow, damaged

FROM_LINES = {"labels", "facts", "runs", "line_files"}
"""Tables that the line files and the runs' folders bring back; replies do, too, but not calls without one."""

WORDS = {
    "annotators": "guests' links",
    "sheets": "comments of labels",
    "requests": "prompts",
    "calls": "calls without a reply",
    "originals": "what placeholders stand for",
    "batched": "calls in providers' batches",
}
"""What a table holds, where its name doesn't say it."""


def check(store: Store) -> None:
    """Read all of a store: the database, every reply in it, every part.

    Raises:
        StoreDamaged: Something isn't as it was written.
    """
    where = str(store.folder / FILE)
    if (found := store.value("PRAGMA integrity_check(1)")) != "ok":
        raise damaged(where, found.splitlines()[-1])
    for row in store.rows("SELECT key, reply FROM calls WHERE reply IS NOT NULL"):
        if (values := read_line(row["reply"])) is None or values["key"] != row["key"]:
            raise damaged(where, f"the reply to call {row['key'][:12]}… was changed")
    for folder in (store.folder / TEXTS, *(store.folder / RUNS).glob("*")):
        for part in all_parts(folder):
            if why := unreadable(part.path):
                raise damaged(str(part.path), why)


def rebuild(folder: Path) -> list[str]:
    """Set unreadable files aside, make the database from the line files and what can be read of the old one, report it.

    Raises:
        StoreBusy: A run is running in the store.
        WrongUse: There is no store.
    """
    path = folder / FILE
    if not path.exists() and not (folder / REPLIES.name).exists():
        raise WrongUse("there is no store here", where=str(folder), remedy="name its folder", option="store")
    for run in (folder / RUNS).glob("*"):
        if is_worked_on(folder / RUNS, run.name):
            raise StoreBusy(f"{run.name} is running", where=str(folder), remedy="wait until it ends")
    old = _set_database_aside(path)
    done = [f"the database was set aside as {old.name}"] if old else []
    done += _set_parts_aside(folder)
    with Store.open(folder) as store:
        lost = store.transact(lambda connection: _take_over(old, connection)) if old else []
        kept = f"{store.paid} paid answers, {store.value('SELECT count(*) FROM labels')} labels and "
        runs = store.value("SELECT count(*) FROM runs")
        gone = f"; gone, as far as the old one can't be read: {', '.join(lost)}" if lost else ""
        return [*done, *store.notices, f"the new one has {kept}{runs} runs{gone}"]


def _set_database_aside(path: Path) -> Path | None:
    if not path.exists():
        return None
    kept = aside(path)
    for ending in reversed(REMAINS):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(kept.with_name(kept.name + ending))
    return kept


def _take_over(old: Path, connection: sqlite3.Connection) -> list[str]:
    """Copy what a database alone had, as far as it can be read; return what can't."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    lost = []
    with closing(sqlite3.connect(f"{old.absolute().as_uri()}?mode=ro", uri=True)) as source:
        for table in sorted(set(tables) - FROM_LINES):
            try:
                _copy_rows(table, source, connection)
            except (sqlite3.Error, UnicodeDecodeError):
                lost.append(WORDS.get(table, table.replace("_", " ")))
    return lost


def _copy_rows(table: str, source: sqlite3.Connection, into: sqlite3.Connection) -> None:
    """Copy the rows of a table until one can't be read; of calls those whose reply no line has."""
    which = " WHERE reply IS NULL" if table == "calls" else ""
    rows = source.execute(f"SELECT * FROM {table}{which}")
    columns = [column[0] for column in rows.description]
    places = ", ".join("?" * len(columns))
    either = "IGNORE" if table == "calls" else "REPLACE"  # a sheet that was made of its label alone lacks its comment
    sql = f"INSERT OR {either} INTO {table} ({', '.join(columns)}) VALUES ({places})"
    while row := rows.fetchone():
        into.execute(sql, row)


def _set_parts_aside(folder: Path) -> list[str]:
    """Set unreadable parts aside, and scores without all answers, which a resume restores."""
    done = []
    for each in (folder / TEXTS, *(folder / RUNS).glob("*")):
        parts = all_parts(each)
        bad = {part for part in parts if unreadable(part.path)}
        if any(part.pile.name == AnswerRow.table for part in bad):
            bad |= {part for part in parts if part.pile.name == ScoreRow.table}
        for part in sorted(bad):
            kept = aside(part.path)
            part.path.rename(kept)
            done.append(f"{part.path.name} of {each.name} was set aside as {kept.name}: a resume makes it anew")
    return done
