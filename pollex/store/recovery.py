"""Opening a store as it lies there: made, migrated, repaired, and brought in line with its journal.

The journal is the truth about what it holds; the database is that and everything that can be had again for nothing.
After a kill the database may lag behind, and is topped up. When its write-ahead log can't be read, the log is set
aside; when the file itself can't, it is set aside, too, and built anew from the journal. When it is the journal that
was damaged or lost, it is written anew from the database. What is set aside is never overwritten or deleted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from pollex.errors import StoreDamaged, WrongUse
from pollex.store.database import Damaged, Database
from pollex.store.journal import START, Entry, Journal, Place, Survey, corrupt_name, replace, sync_folder
from pollex.store.migrations import MIGRATIONS, applied, migrate, pending

FULLY_CHECKED = 32 << 20
"""A database up to this size is read whole when it is opened; a larger one when a query met damage in it before."""

BATCH = 8 << 20


@dataclass
class Recovery:
    """One opening of the database at `path`, and what there is to tell about it.

    Args:
        visit: Called with each entry of the journal.
    """

    path: Path
    journal: Journal
    visit: Callable[[Entry, Place], None]
    notices: list[str] = field(default_factory=list)

    def open(self) -> Database:
        """The database, holding all that the journal holds.

        Raises:
            StoreDamaged: It can't be read, and there is no journal to rebuild it from.
            WrongUse: A newer pollex made it.
        """
        if self.path.exists():
            self._make_readable()
        else:
            self._set_aside(log_of(self.path), "it had no database")
            if self.journal.has_entries:
                self.notices.append(f"{self.path} was missing: rebuilt from the journal")
        try:
            return self._open_reconciled()
        except Damaged as damage:
            self._set_aside(self.path, str(damage))
            return self._open_reconciled()

    def _make_readable(self) -> None:
        """Sets the write-ahead log aside when the file can be read without it, else the file."""
        damage = unreadable(self.path)
        if damage and not self.journal.has_entries:
            raise StoreDamaged(
                f"the store can't be read ({damage}), and there is no journal to rebuild it from",
                where=str(self.path),
                remedy="restore a backup, or move the file away to begin with an empty store; it was left as it is",
            )
        if damage and log_of(self.path).exists():
            self._set_aside(log_of(self.path), damage)
            damage = unreadable(self.path)
        if damage:
            self._set_aside(self.path, damage)

    def _open_reconciled(self) -> Database:
        """Raises `Damaged` when the file holds less than its mark says."""
        if self.path.exists():
            upgrade(self.path, self.notices)
        else:
            create(self.path)
        database = Database(self.path)
        try:
            self._reconcile(database, self.journal.survey(database.mark, self.visit))
        except BaseException:
            database.close()
            raise
        return database

    def _set_aside(self, path: Path, cause: str) -> None:
        """A log without its file, or with another, would be taken for that file's own: the two go together."""
        if path == self.path:
            self._set_aside(log_of(path), cause)
        if not path.exists():
            return
        kept = corrupt_name(path)
        path.rename(kept)
        suspicion(self.path).unlink(missing_ok=True)
        sync_folder(path.parent)
        self.notices.append(f"{path} was damaged ({cause}): kept as {kept.name}, and rebuilt from the journal")

    def _reconcile(self, database: Database, survey: Survey) -> None:
        if survey.known and survey.counts != database.counts():
            raise Damaged("it holds less than it says")
        if survey.partial:
            self.journal.cut()
            self.notices.append(f"the journal ended in an unfinished line of {survey.partial} bytes, which was removed")
        if survey.damaged or not survey.known:
            self._unite(database, survey)
        elif database.mark != survey.end:
            top_up(database, self.journal)

    def _unite(self, database: Database, survey: Survey) -> None:
        """Writes the journal anew: what the database holds, then what only the old journal held."""
        stored = database.journaled()
        known = {_content(entry) for entry in stored}
        missing = [entry for entry, _ in self.journal.entries() if _content(entry) not in known]
        kept = replace(self.journal.path, [*stored, *missing])
        self.journal.reopen()
        end = self.journal.survey(START, self.visit).end
        database.insert(missing, end)
        damage = f"had {survey.damaged} damaged lines" if survey.damaged else "was not what the store was filled from"
        aside = f"; the old one is kept as {kept.name}" if kept else ""
        self.notices.append(f"the journal {damage}: written anew with {len(stored) + len(missing)} lines{aside}")


def unreadable(path: Path) -> str:
    """Why the file can't be read, empty when it can. The file is not changed.

    Raises:
        WrongUse: A newer pollex made it.
    """
    doubts = suspicion(path)
    try:
        with closing(Database(path, read_only=True)) as database:
            if path.stat().st_size <= FULLY_CHECKED or doubts.exists():
                database.check()
            pending(applied(database), path)
    except Damaged as damage:
        return str(damage)
    doubts.unlink(missing_ok=True)
    return ""


def suspicion(path: Path) -> Path:
    """The file whose presence says that a query met damage."""
    return path.with_name(path.name + ".suspect")


def log_of(path: Path) -> Path:
    """The write-ahead log that DuckDB keeps beside a file."""
    return path.with_name(path.name + ".wal")


def create(path: Path) -> None:
    """Makes an empty database. It gets its name when it is complete, so a kill leaves none or a whole one."""
    fresh = path.with_name(path.name + ".new")
    for rest in (fresh, log_of(fresh)):
        rest.unlink(missing_ok=True)
    with closing(Database(fresh)) as database:
        migrate(database, list(MIGRATIONS))
    fresh.rename(path)
    sync_folder(path.parent)


def upgrade(path: Path, notices: list[str]) -> None:
    """Brings an older schema up to date; a copy of the file as it was stays beside it."""
    with closing(Database(path)) as database:
        missing = pending(applied(database), path)
        if missing:
            database.execute("CHECKPOINT")  # so that the copy needs no write-ahead log
    if not missing:
        return
    backup = _back_up(path, missing[0])
    with closing(Database(path)) as database:
        migrate(database, missing)
    notices.append(f"the store was brought to schema {len(MIGRATIONS)}; as it was before it is kept as {backup.name}")


def top_up(database: Database, journal: Journal) -> None:
    """Adds what the journal holds behind the database's mark."""
    batch: list[Entry] = []
    size = 0
    for entry, end in journal.entries(database.mark):
        batch.append(entry)
        size += entry.size
        if size > BATCH:
            database.insert(batch, end)
            batch, size = [], 0
    database.insert(batch, journal.end)


def open_read_only(path: Path) -> Database:
    """The database for reading, in no way changed.

    Raises:
        StoreDamaged: It can't be read.
        WrongUse: There is none, or one of another schema.
    """
    if not path.exists():
        raise WrongUse("there is no store here", where=str(path.parent), remedy="give the right folder with --store")
    try:
        database = Database(path, read_only=True)
        old = pending(applied(database), path)
    except (Damaged, duckdb.Error) as damage:
        raise StoreDamaged(
            f"the store can't be read ({damage})", where=str(path), remedy="open it for writing once: that repairs it"
        ) from None
    if old:
        database.close()
        raise WrongUse("an older pollex made this store", where=str(path), remedy="open it for writing once")
    return database


def _back_up(path: Path, name: str) -> Path:
    """A copy of the file, made once: a migration that was killed and is repeated keeps the first."""
    backup = path.with_name(f"{path.name}.before.{name}")
    if not backup.exists():
        unfinished = backup.with_name(backup.name + ".new")
        shutil.copy2(path, unfinished)
        unfinished.rename(backup)
        sync_folder(path.parent)
    return backup


def _content(entry: Entry) -> tuple[str, str]:
    """What a row says, however its JSON is written."""
    row = {name: value for name, value in json.loads(entry.row).items() if value is not None}
    return entry.table, json.dumps(row, sort_keys=True)
