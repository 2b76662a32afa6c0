"""The store: one folder that people can look into, all that pollex keeps.

    store.sqlite                runs and how far they are, paid calls, prompts, spans, results,
    labels
    backup.sqlite               a copy of it from the end of the last run
    runs/<run>/*.parquet        conversations, answers and scores as columns; texts/*.parquet their
    turns
    checkpoints.sqlite          states of graphs, to see them and to go on from there: all can be
    made again
    secret                      see `folder`

    with Store.open(Path(".pollex")) as store:
        run = store.begin("learn", arguments={…}, fingerprint={…}, versions={…})
        store.put(conversation_rows(run.id, conversations, side="train"))        # returns at once
        await store.write(conversation_rows(run.id, more))  # returns when it is kept
        store.finish(run.id, "done", roles=["built-in (no LLM)"], result={…})

Any number of processes may have it open; each run is worked on by one. Rows are built by the
functions in `rows` and read back by those in `resume` and `traces`. Reading sees what is kept:
after a `put`, `flush` or `settle` first.
"""

import atexit
import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pollex.errors import PollexError, StoreFull, WrongUse
from pollex.outputs import note_run
from pollex.store.columns import RUNS_FOLDER_NAME, TEXTS_FOLDER_NAME, Columns, RowBlock
from pollex.store.database import (
    BACKUP_FILE_NAME,
    CHECKPOINTS_FILE_NAME,
    DATABASE_FILE_NAME,
    Database,
    SqlStatement,
)
from pollex.store.folder import (
    DEFAULT_STORE_FOLDER,
    get_or_create_secret,
    make_private_folder,
    make_write_error,
    require_plain_store_files,
)
from pollex.store.runs import (
    ALL_RUNS_QUERY,
    CallLeaseRequest,
    LeaseHolder,
    Run,
    RunLock,
    RunStatus,
    make_run_statement,
)
from pollex.store.soundness import find_damage_behind_error
from pollex.store.tables import (
    FactRow,
    Row,
    dump_json,
    format_current_time,
    iterate_rows_without_texts,
    make_damage_error,
)
from pollex.store.writer import StoredRow, Writer, make_queued_row
from pollex.text import is_unicode_path

LOGGER = logging.getLogger(__name__)

ResultType = TypeVar("ResultType")

DEFAULT_STORE_PATH = Path(DEFAULT_STORE_FOLDER)


def has_files_of_removed_store(folder: Path) -> bool:
    """Tell whether a folder has what only a store leaves that had a database with tables."""
    if any((folder / name).exists() for name in (BACKUP_FILE_NAME, CHECKPOINTS_FILE_NAME)):
        return True

    return (
        any((folder / RUNS_FOLDER_NAME).glob("*/*"))
        or get_size(folder / f"{DATABASE_FILE_NAME}-wal") > 0
    )


def get_size(path: Path) -> int:
    """Return a file's bytes; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Store:
    """An open store; make one with `open`. Any thread may use it.

    Attributes:
        folder: Where it is; what can be made again, embeddings for example, has folders of its own
            in there.
        database: The rows, `columns` the Parquet files: for what takes things out of them.
        prompts: Whether prompts are kept.
        texts: Whether what was said is kept; a run is then shown without its turns.
    """

    def __init__(
        self,
        folder: Path,
        *,
        read_only: bool,
        secret: bytes | None = None,
        goes_on: bool = False,
    ) -> None:
        self.folder = folder
        self.prompts = self.texts = True
        self._given = secret
        self._claims = dict[str, RunLock]()
        self._closed = False
        # nothing is opened before it is known to be the store's own
        require_plain_store_files(folder)

        if not read_only:
            _make_store_private(folder)
        elif not (folder / DATABASE_FILE_NAME).exists():
            raise WrongUse(
                "there is no store here",
                where=str(folder),
                hint="name its folder",
                option="store",
            )

        # What is left of a database without one: it was lost. Looked at first, since another process
        # may be making this store just now.
        has_history = has_files_of_removed_store(folder)
        if has_history and not get_size(folder / DATABASE_FILE_NAME):
            why = "it is empty" if (folder / DATABASE_FILE_NAME).exists() else "it is gone"
            raise make_damage_error(str(folder / DATABASE_FILE_NAME), why)

        self.database = Database(
            folder / DATABASE_FILE_NAME,
            read_only=read_only,
            may_be_new=not has_history,
        )
        self.columns = Columns(folder)
        if read_only:
            self._writes = None
        else:
            self._writes = Writer(folder, self.columns, goes_on=goes_on)

        # a program that ends without closing would lose what is queued
        atexit.register(self.close)

    @classmethod
    def open(
        cls,
        folder: Path = DEFAULT_STORE_PATH,
        *,
        read_only: bool = False,
        secret: bytes | None = None,
        goes_on: bool = False,
    ) -> Self:
        """Open the store, for writing unless `read_only`; make it where there is none.

        Args:
            secret: That of another store whose replies are to be found here; see
                `folder.get_or_create_secret`.
            goes_on: A write that failed is told to who wrote it, and later ones are tried; a run
                ends instead.

        Raises:
            StoreDamaged: It can't be read.
            StoreFull: There is no room on the disk.
            WrongUse: It can't be written, isn't there (`read_only`), or was made by a newer or an
                older pollex.
        """
        if not is_unicode_path(folder):
            raise WrongUse(
                "its name is not valid UTF-8",
                where=str(folder),
                hint="name another folder",
                option="store",
            )

        with _withhold_resume_hint(folder):
            return cls(
                folder,
                read_only=read_only,
                secret=secret,
                goes_on=goes_on,
            )

    @property
    def secret(self) -> bytes:
        """The store's secret, made when it is first needed. Raises as `folder.get_or_create_secret` does."""
        return get_or_create_secret(self.folder, self._given, self.paid)

    @cached_property
    def sender(self) -> LeaseHolder:
        """Who holds the leases of calls that are sent from here."""
        return LeaseHolder(self.folder)

    @property
    def paid(self) -> int:
        """Number of paid replies."""
        return int(self.value("SELECT count(*) FROM calls WHERE reply IS NOT NULL"))

    def put(self, rows: Iterable[Row | StoredRow | RowBlock]) -> None:
        """Queue facts and return.

        Raises:
            PollexError: An earlier write failed, so the store takes no more.
            ValueError: A row can't be kept: nothing of the call is.
        """
        self._writer.put(
            map(make_queued_row, rows if self.texts else iterate_rows_without_texts(rows))
        )

    def copy_answers(
        self,
        of: str,
        run: str,
        only: Collection[str] | None = None,
    ) -> None:
        """Queue the answers of another run as this one's; with `only`, a model's to these questions."""
        if (only is None or only) and (rows := self.columns.answers_for(run, of, only)):
            self.put([rows])

    async def write(self, rows: Iterable[Row]) -> None:
        """Write rows; return when they and all earlier rows are stored and readable.

        Raises:
            StoreFull: There is no room on the disk.
            StoreDamaged: The store can't be written as it lies there.
        """
        await self._writer.write(
            map(make_queued_row, rows if self.texts else iterate_rows_without_texts(rows)),
            settle=True,
        )

    def keep(self, rows: Iterable[Row]) -> None:
        """Do `write` in synchronous code."""
        self._writer.flush(
            map(make_queued_row, rows if self.texts else iterate_rows_without_texts(rows))
        )

    async def settle(self) -> None:
        """Return when all queued rows are stored and readable; raise as `write` does."""
        await self._writer.write((), settle=True)

    def flush(self) -> None:
        """Do `settle` in synchronous code."""
        self._writer.flush()

    async def change(self, *changes: SqlStatement | CallLeaseRequest) -> None:
        """Return when changes of the database are committed. Raises as `write` does."""
        await self._writer.write(changes)

    def begin(
        self,
        command: str,
        *,
        arguments: Mapping[str, object],
        fingerprint: Mapping[str, str],
        versions: Mapping[str, str],
    ) -> Run:
        """Start a run; it is kept when it returns.

        Args:
            fingerprint: Digests by name of all that the result depends on; see `Run`.
        """
        with _withhold_resume_hint(self.folder), self.database.transaction() as connection:
            # numbered in the transaction, so that no two runs share a number
            (last,) = connection.execute("SELECT max(number) FROM runs").fetchone()
            run = Run(
                id=f"{command}-{1 + (last or 0)}-{secrets.token_hex(2)}",
                number=1 + (last or 0),
                command=command,
                arguments=dict(arguments),
                fingerprint=dict(fingerprint),
                versions=dict(versions),
                started=format_current_time(),
            )
            connection.execute(*make_run_statement(run))

        self._claim(run.id)
        note_run(run.id)
        return run

    def take_up(self, run: str, *, roles: Sequence[str] = ()) -> None:
        """Go on with a run, and lock it for other processes until it ends.

        Raises:
            StoreBusy: Another process works on it.
        """
        self._claim(run)
        note_run(run)
        self._note(run, status="unfinished", roles=tuple(roles), finished=None)

    def finish(
        self,
        run: str,
        status: RunStatus,
        *,
        roles: Sequence[str] = (),
        result: object = None,
    ) -> None:
        """Record the end of a run after all its rows, merge its parts, and back the database up.

        A resumed run is `finish`ed again, and the last status stands.
        """
        self.flush()
        self.columns.put_together(run)
        self._note(
            run,
            status=status,
            roles=tuple(roles),
            result=result,
            finished=format_current_time(),
        )
        self.backup()
        if claim := self._claims.pop(run, None):
            claim.release()

    async def write_step(self, run: str, name: str, payload: object) -> None:
        """Keep what a step that is done once in a run came to, JSON values."""
        await self.write([FactRow(run, "step", name, dump_json(payload))])

    def pulse(self, run: str, payload: Mapping[str, object]) -> None:
        """Note how far a run is; see `progress`."""
        values = [run, os.getpid(), format_current_time(), dump_json(payload)]
        self._writer.put(
            [SqlStatement("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", values)]
        )

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return the rows of a query as dicts; text belongs into `parameters`.

        Raises:
            StoreDamaged: The database can't be read.
        """
        return self.database.rows(sql, parameters)

    def each(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a large query as tuples. Raises as `rows` does."""
        return self.database.each(sql, parameters)

    def value(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first value of a query; None without rows. Raises as `rows` does."""
        return self.database.value(sql, parameters)

    def ask(self, run: str, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return what a query over a run's columns gives; see `Columns.ask`."""
        return self.columns.ask(run, sql, parameters)

    def transact(self, work: Callable[[sqlite3.Connection], ResultType]) -> ResultType:
        """Do work on the database in a transaction; what it deletes is overwritten."""
        self.flush()
        with self.database.transaction() as connection:
            return work(connection)

    def backup(self) -> None:
        """Copy the database to the backup beside it; where that can't be, say so and go on."""
        self._writer.durable = False
        try:
            self.database.backup()
        except PollexError as failure:
            LOGGER.warning(
                "%s: no backup was made, the last one stays: %s",
                self.folder,
                failure.what,
            )

    def close(self) -> None:
        """Write what is queued; harmless when repeated.

        Raises:
            PollexError: Something that was put could not be written.
        """
        if self._closed:
            return

        self._closed = True
        atexit.unregister(self.close)
        if self._writes is not None:
            self._writes.close()
            if self._writes.durable:
                self.backup()

        # locks go before the files are closed
        for claim in self._claims.values():
            claim.release()

        if "sender" in vars(self):
            self.sender.release()

        self.columns.close()
        self.database.close()
        if self._writes is not None and self._writes.failure is not None:
            raise self._writes.failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # what nobody expected may come of a store that somebody changed
        damage = find_damage_behind_error(self, error)
        try:
            self.close()
        except PollexError:
            if error is None:  # else the first error is the one to tell
                raise

        if damage is not None:
            raise damage from error

    @property
    def _writer(self) -> Writer:
        if self._writes is None:
            raise WrongUse(
                "the store was opened for reading only",
                where=str(self.folder),
            )

        return self._writes

    def _claim(self, run: str) -> None:
        if run not in self._claims:
            self._claims[run] = RunLock(self.folder / RUNS_FOLDER_NAME / run)

    def _note(self, run: str, **changes: object) -> None:
        with self.database.transaction() as connection:
            # a run that was taken out meanwhile is not noted
            cursor = connection.execute(f"{ALL_RUNS_QUERY} WHERE id = ?", [run])
            names = [column[0] for column in cursor.description]
            row = cursor.fetchone()
            if row is None:
                return
            noted = Run.read(dict(zip(names, row, strict=True))).model_copy(update=changes)
            connection.execute(*make_run_statement(noted))


@contextmanager
def _withhold_resume_hint(folder: Path) -> Iterator[None]:
    """Advise no resume of what has not begun."""
    try:
        yield
    except OSError as failure:
        raise make_write_error(folder, failure) from failure
    except StoreFull as full:
        raise StoreFull(full.what, hint="make room, then run the command again") from full


def _make_store_private(folder: Path) -> None:
    """Make folder and files unreadable to others, also where they were there before.

    A folder with other things in it stays as it is: `/tmp` for example isn't to be one person's
    alone.
    """
    if folder.is_dir() and not (folder / DATABASE_FILE_NAME).exists() and any(folder.iterdir()):
        for private in (folder / RUNS_FOLDER_NAME, folder / TEXTS_FOLDER_NAME):
            make_private_folder(private)
        return

    for private in (folder, folder / RUNS_FOLDER_NAME, folder / TEXTS_FOLDER_NAME):
        make_private_folder(private)

    for file in folder.iterdir():
        # another process that closes the database takes SQLite's own files away
        with suppress(FileNotFoundError):
            if file.is_file() and file.stat().st_mode & 0o077:
                file.chmod(0o600)
