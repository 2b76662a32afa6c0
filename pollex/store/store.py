"""The store: one folder, one writing process, all that pollex keeps.

    with Store.open(Path(".pollex")) as store:
        run = store.begin("learn", arguments={…}, fingerprint={…}, versions={…})
        store.put(conversation_rows(run.id, conversations, side="train"))        # returns at once
        await store.write(answer_rows(run.id, one, questions, answers, judge.fingerprint))  # returns when durable
        store.finish(run.id, "done", roles=["embedded"], result={…})

What is kept is built by the functions in `rows`; how a fact reaches the disk is in `writer`, what happens after a crash
in `recovery`, reading back in `resume` and `traces`. Reading sees what is durable: after a `put`, `flush` or `settle`
first.
"""

from __future__ import annotations

import atexit
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from pollex.errors import PollexError, WrongUse
from pollex.store import database as files
from pollex.store import journal as lines
from pollex.store.calls import CallIndex
from pollex.store.database import Database, read_error, write_error
from pollex.store.journal import Journal, write_failed
from pollex.store.lock import FolderLock
from pollex.store.place import STORE
from pollex.store.recovery import Recovery, open_read_only, suspicion
from pollex.store.runs import Run, Status, run_row
from pollex.store.tables import Row, RunEventRow, StepRow, now, packed
from pollex.store.writer import Writer
from pollex.text import is_text

DEFAULT = Path(STORE)


class Store:
    """An open store; make one with `open`. Any thread may use it.

    Attributes:
        folder: Where it is; what can be made again, embeddings for example, has folders of its own in there.
        notices: What the user should know of how it was found: repairs and migrations.
        calls: Index of the paid calls' answers; empty in a store that was opened for reading.
    """

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder, self.notices, self.calls = folder, list[str](), CallIndex()
        self._closed, self._numbering = False, threading.Lock()
        if not read_only:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FolderLock(folder, shared=read_only)
        try:
            self._journal, self._database = self._open_files(read_only=read_only)
        except BaseException:
            self._lock.release()
            raise
        self._writer = (
            Writer(self._database, self._journal, self.calls.note, self.calls.__len__) if self._journal else None
        )
        # A program that ends without closing would lose what is queued, and DuckDB aborts it when a thread is in there.
        atexit.register(self.close)

    @classmethod
    def open(cls, folder: Path = DEFAULT, *, read_only: bool = False) -> Self:
        """Opens the store, for writing unless `read_only`; makes, migrates or repairs it where that is needed.

        Raises:
            StoreBusy: Another process has it open; the message names the process.
            StoreDamaged: It can't be read, and there is nothing to repair it from.
            StoreFull: There is no room on the disk.
            WrongUse: It can't be written, isn't there (`read_only`), or was made by a newer pollex.
        """
        if not is_text(folder):
            raise WrongUse("its name is no UTF-8 text", where=str(folder), remedy="name another folder: --store")
        try:
            return cls(folder, read_only=read_only)
        except OSError as failure:
            raise write_failed(folder, failure) from failure

    @property
    def journal(self) -> Journal:
        """The open journal."""
        if self._journal is None:
            raise WrongUse("the store was opened for reading only", where=str(self.folder))
        return self._journal

    @property
    def writer(self) -> Writer:
        """The way of facts to the disk."""
        if self._writer is None:
            raise WrongUse("the store was opened for reading only", where=str(self.folder))
        return self._writer

    def put(self, rows: Iterable[Row]) -> None:
        """Queues facts and returns.

        Raises:
            PollexError: An earlier write failed, so the store takes no more.
        """
        self.writer.put(rows)

    async def write(self, rows: Iterable[Row]) -> None:
        """Returns when the facts, and all that was put before, are durable and can be read.

        Raises:
            StoreFull: There is no room on the disk.
            StoreDamaged: The database stopped; opening the store again repairs it.
        """
        await self.writer.write(rows)

    async def settle(self) -> None:
        """Returns when all that was put is durable and can be read. Raises as `write` does."""
        await self.writer.settle()

    def flush(self) -> None:
        """`settle`, for code that isn't async."""
        self.writer.flush()

    def begin(
        self, command: str, *, arguments: Mapping[str, Any], fingerprint: Mapping[str, str], versions: Mapping[str, str]
    ) -> Run:
        """Starts a run; durable when it returns.

        Args:
            fingerprint: Digests by name of all that the result depends on; see `Run`.
        """
        with self._numbering:
            number = 1 + (self.value("SELECT max(number) FROM runs") or 0)
            run = Run(
                id=f"{command}-{number}-{secrets.token_hex(2)}",
                number=number,
                command=command,
                arguments=dict(arguments),
                fingerprint=dict(fingerprint),
                versions=dict(versions),
                started=now(),
            )
            self.put([run_row(run)])
            self.flush()
        return run

    def finish(self, run: str, status: Status, *, roles: Sequence[str] = (), result: Any = None) -> None:
        """Notes what became of a run; durable, with all that was put before, when it returns.

        A resumed run is `finish`ed again, and the last status stands; `unfinished` says that it was taken up again.
        """
        self.put([RunEventRow(run, status, now(), tuple(roles), packed(result))])
        self.flush()

    async def write_step(self, run: str, name: str, payload: Any) -> None:
        """Keeps what a step that is done once in a run came to, JSON values; durable when it returns."""
        await self.write([StepRow(run, name, packed(payload))])

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """What a query gives, a dict a row. Text goes into `parameters`, never into `sql`.

        Raises:
            StoreDamaged: The database can't be read.
        """
        try:
            return self._database.rows(sql, parameters)
        except (duckdb.ProgrammingError, duckdb.PermissionException):
            raise  # the query is wrong, not the store
        except duckdb.Error as failure:
            raise self._suspected(failure) from failure

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, None when there is none. Raises as `rows` does."""
        rows = self.rows(sql, parameters)
        return next(iter(rows[0].values())) if rows else None

    def close(self) -> None:
        """Writes what is queued, and lets other processes in; harmless when repeated.

        Raises:
            PollexError: Something that was put could not be written.
        """
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        failure: Exception | None = None
        if self._writer is not None:
            self._writer.close()
            failure = self._writer.failure or self._checkpoint()
        self._database.close()
        if self._journal is not None:
            self._journal.close()
        self._lock.release()
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except PollexError:
            if error is None:  # else the first error is the one to tell
                raise

    def _open_files(self, *, read_only: bool) -> tuple[Journal | None, Database]:
        path = self.folder / files.FILE
        if read_only:
            return None, open_read_only(path)
        journal = Journal(self.folder / lines.FILE, writable=True)
        try:
            return journal, Recovery(path, journal, self.calls.note, self.notices).open()
        except BaseException as failure:
            journal.close()
            if isinstance(failure, duckdb.Error):
                raise write_error(path, failure) from failure
            raise

    def _checkpoint(self) -> PollexError | None:
        """Folds the write-ahead log into the file, so that a store at rest is one file and its journal."""
        try:
            self._database.execute("CHECKPOINT")
        except duckdb.Error as failure:
            return write_error(self._database.path, failure)
        return None

    def _suspected(self, failure: duckdb.Error) -> PollexError:
        """Leaves word for the next opening that the file must be read whole."""
        if self._writer is not None:
            suspicion(self._database.path).touch()
        return read_error(self._database.path, failure)
