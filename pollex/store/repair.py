"""Looking a store through for damage, and making its database anew."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import duckdb

from pollex.errors import StoreBusy, WrongUse
from pollex.store.columns import RUNS, TEXTS, all_parts
from pollex.store.database import FILE, REMAINS
from pollex.store.folder import aside
from pollex.store.line_files import REPLIES, read_line
from pollex.store.runs import is_worked_on
from pollex.store.store import Store
from pollex.store.tables import AnswerRow, ScoreRow, damaged

GONE = (
    "what was kept in the database alone is gone: spans (times and errors of steps), prompts, calls without a reply, "
    "queues of conversations to label"
)


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
    """Set unreadable files aside, make the database from the line files, and report it.

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
    done = [*_set_database_aside(path), *_set_parts_aside(folder)]
    with Store.open(folder) as store:
        kept = f"{store.paid} paid answers, {store.value('SELECT count(*) FROM labels')} labels and "
        runs = store.value("SELECT count(*) FROM runs")
        return [*done, *store.notices, f"the new one has {kept}{runs} runs; {GONE}"]


def unreadable(part: Path) -> str:
    """Return why a Parquet file can't be read; empty where it can."""
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute("SELECT bit_xor(hash(t)) FROM read_parquet(?) AS t", [[str(part)]]).fetchall()
    except duckdb.Error as failure:
        return str(failure).splitlines()[0][:300]
    return ""


def _set_database_aside(path: Path) -> list[str]:
    if not path.exists():
        return []
    kept = aside(path)
    for ending in reversed(REMAINS):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(kept.with_name(kept.name + ending))
    return [f"the database was set aside as {kept.name}"]


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
