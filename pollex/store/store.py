"""The store: one folder that people can look into, all that pollex keeps.

    store.sqlite                runs and how far they are, paid calls, prompts, spans, results, labels
    replies.jsonl, labels.jsonl, facts.jsonl
                                what was paid for, what people said, what runs came to (extractions, rubrics, steps):
                                from these and the runs' folders the database can be made anew
    runs/<run>/*.parquet        conversations, answers and scores as columns; texts/*.parquet their turns
    secret                      see `folder`

    with Store.open(Path(".pollex")) as store:
        run = store.begin("learn", arguments={…}, fingerprint={…}, versions={…})
        store.put(conversation_rows(run.id, conversations, side="train"))        # returns at once
        await store.write(answer_rows(run.id, one, questions, answers, judge.fingerprint))  # returns when it is kept
        store.finish(run.id, "done", roles=["built-in (no LLM)"], result={…})

Any number of processes may have it open; each run is worked on by one. Rows are built by the functions in `rows` and
read back by those in `resume` and `traces`. Reading sees what is kept: after a `put`, `flush` or `settle` first.
"""

from __future__ import annotations

import atexit
import os
import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pollex.errors import PollexError, StoreFull, WrongUse
from pollex.store.columns import KINDS, RUNS, TEXTS, Columns, Part
from pollex.store.database import FILE, PATIENCE, WHILE_ASKED, Database
from pollex.store.folder import STORE, keep_secret, make_private, write_failed
from pollex.store.group_commit import GroupCommit
from pollex.store.lease import Lease, Sender
from pollex.store.line_files import FILES, Change, Line, LineFile, queued
from pollex.store.runs import ALL_RUNS, Claim, Run, Status, changed, keep_copy, kept_copies
from pollex.store.tables import ColumnRow, FactRow, Row, now, packed, without_texts
from pollex.text import is_text

T = TypeVar("T")

DEFAULT = Path(STORE)
OLDER = ("store.duckdb", "journal.jsonl")
"""Files of stores that no version after 0.1.0's first months reads."""

BATCH = 8 << 20
"""Bytes of rows in memory that make a part."""
LATEST = 10.0
"""Seconds after which rows in memory become a part."""


class Store:
    """An open store; make one with `open`. Any thread may use it.

    Attributes:
        folder: Where it is; what can be made again, embeddings for example, has folders of its own in there.
        notices: What the user should know of how it was found.
        prompts: Whether prompts are kept.
        texts: Whether what was said is kept; a run is then shown without its turns.
    """

    def __init__(self, folder: Path, *, read_only: bool, secret: bytes | None = None, goes_on: bool = False) -> None:
        self._goes_on = goes_on
        self.folder, self.notices = folder, list[str]()
        self.prompts = self.texts = True
        self._given, self._claims, self._closed = secret, dict[str, Claim](), False
        _refuse_older(folder)
        if not read_only:
            _make_private(folder)
        elif not (folder / FILE).exists():
            raise WrongUse("there is no store here", where=str(folder), remedy="name its folder", option="store")
        self._database, self._columns = Database(folder / FILE, read_only=read_only), Columns(folder)
        self._rows: dict[tuple[type[ColumnRow], str], list[str]] = defaultdict(list)
        self._size, self._since = 0, time.monotonic()
        self._writing: Database | None = None
        self._commits: GroupCommit[Change | Lease | Line] | None = None
        if not read_only:
            self._begin_writing()
        atexit.register(self.close)  # a program that ends without closing would lose what is queued

    @classmethod
    def open(
        cls, folder: Path = DEFAULT, *, read_only: bool = False, secret: bytes | None = None, goes_on: bool = False
    ) -> Self:
        """Open the store, for writing unless `read_only`; make it where there is none.

        Args:
            secret: That of another store whose replies are to be found here; see `folder.keep_secret`.
            goes_on: A write that failed is told to who wrote it, and later ones are tried; a run ends instead.

        Raises:
            StoreDamaged: It can't be read.
            StoreFull: There is no room on the disk.
            WrongUse: It can't be written, isn't there (`read_only`), or was made by a newer or a much older pollex.
        """
        if not is_text(folder):
            raise WrongUse(
                "its name is not valid UTF-8", where=str(folder), remedy="name another folder", option="store"
            )
        with _before_a_run(folder):
            return cls(folder, read_only=read_only, secret=secret, goes_on=goes_on)

    @property
    def secret(self) -> bytes:
        """The store's secret, made when it is first needed. Raises as `folder.keep_secret` does."""
        return keep_secret(self.folder, self._given, self.paid)

    @cached_property
    def sender(self) -> Sender:
        """Who holds the leases of calls that are sent from here."""
        return Sender(self.folder)

    @property
    def paid(self) -> int:
        """Number of paid replies."""
        return int(self.value("SELECT count(*) FROM calls WHERE reply IS NOT NULL"))

    def put(self, rows: Iterable[Row | Line]) -> None:
        """Queue facts and return.

        Raises:
            PollexError: An earlier write failed, so the store takes no more.
            ValueError: A row can't be kept: nothing of the call is.
        """
        self._writer.put(*queued(rows if self.texts else without_texts(rows)))

    async def write(self, rows: Iterable[Row]) -> None:
        """Write rows; return when they and all earlier rows are stored and readable.

        Raises:
            StoreFull: There is no room on the disk.
            StoreDamaged: The store can't be written as it lies there.
        """
        await self._writer.write(*queued(rows if self.texts else without_texts(rows)), settle=True)

    async def settle(self) -> None:
        """Return when all queued rows are stored and readable; raise as `write` does."""
        await self._writer.write((), settle=True)

    def flush(self) -> None:
        """Do `settle` in synchronous code."""
        self._writer.flush()

    async def change(self, *changes: Change | Lease) -> None:
        """Return when changes of the database are committed. Raises as `write` does."""
        await self._writer.write(changes, sum(len(change.line) for change in changes))

    def begin(
        self, command: str, *, arguments: Mapping[str, Any], fingerprint: Mapping[str, str], versions: Mapping[str, str]
    ) -> Run:
        """Start a run; it is kept when it returns.

        Args:
            fingerprint: Digests by name of all that the result depends on; see `Run`.
        """
        with _before_a_run(self.folder), self._database.transaction() as connection:
            (last,) = connection.execute("SELECT max(number) FROM runs").fetchone()
            run = Run(
                id=f"{command}-{1 + (last or 0)}-{secrets.token_hex(2)}",
                number=1 + (last or 0),
                command=command,
                arguments=dict(arguments),
                fingerprint=dict(fingerprint),
                versions=dict(versions),
                started=now(),
            )
            connection.execute(*changed(run))
        self._claim(run.id)
        keep_copy(self.folder / RUNS, run)
        return run

    def take_up(self, run: str, *, roles: Sequence[str] = ()) -> None:
        """Go on with a run, and lock it for other processes until it ends.

        Raises:
            StoreBusy: Another process works on it.
        """
        self._claim(run)
        self._note(run, status="unfinished", roles=tuple(roles), finished=None)

    def finish(self, run: str, status: Status, *, roles: Sequence[str] = (), result: Any = None) -> None:
        """Record the end of a run after all its rows, and merge its parts.

        A resumed run is `finish`ed again, and the last status stands.
        """
        self.flush()
        self._columns.put_together(run)
        self._note(run, status=status, roles=tuple(roles), result=result, finished=now())
        if claim := self._claims.pop(run, None):
            claim.release()

    async def write_step(self, run: str, name: str, payload: Any) -> None:
        """Keep what a step that is done once in a run came to, JSON values."""
        await self.write([FactRow(run, "step", name, packed(payload))])

    def pulse(self, run: str, payload: Mapping[str, Any]) -> None:
        """Note how far a run is; see `progress`."""
        values = [run, os.getpid(), now(), packed(payload)]
        self._writer.put([Change("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", values)])

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of a query as dicts; text belongs into `parameters`.

        Raises:
            StoreDamaged: The database can't be read.
        """
        return self._database.rows(sql, parameters)

    def each(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a large query as tuples. Raises as `rows` does."""
        return self._database.each(sql, parameters)

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the first value of a query; None without rows. Raises as `rows` does."""
        return self._database.value(sql, parameters)

    def ask(self, run: str, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return what a query over a run's columns gives; see `Columns.ask`."""
        return self._columns.ask(run, sql, parameters)

    def drop(self, part: Part, column: str, values: Sequence[str]) -> int:
        """Take rows out of a part; see `Columns.drop`."""
        return self._columns.drop(part, column, values)

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work on the database in a transaction; what it deletes is overwritten."""
        self.flush()
        with self._database.transaction() as connection:
            return work(connection)

    def compact(self) -> None:
        """Write the database anew, without free pages, and empty its log."""
        self._database.compact()

    def close(self) -> None:
        """Write what is queued; harmless when repeated.

        Raises:
            PollexError: Something that was put could not be written.
        """
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        failure: Exception | None = None
        if self._commits is not None:
            with suppress(Exception):  # what failed is told below
                self._commits.flush()
            self._commits.close()
            failure = self._commits.failure
        for claim in self._claims.values():
            claim.release()
        if "sender" in vars(self):
            self.sender.release()
        self._columns.close()
        for database in (self._database, self._writing):
            if database is not None:
                database.close()
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

    @property
    def _writer(self) -> GroupCommit[Change | Lease | Line]:
        if self._commits is None:
            raise WrongUse("the store was opened for reading only", where=str(self.folder))
        return self._commits

    def _begin_writing(self) -> None:
        try:
            patience = WHILE_ASKED if self._goes_on else PATIENCE
            self._writing = Database(self.folder / FILE, patience=patience)
            with self._writing.transaction() as connection:
                self.notices += filter(None, (file.catch_up(self.folder, connection) for file in FILES))
                self._take_in_runs(connection)
        except BaseException:
            self._database.close()
            raise
        self._commits = GroupCommit(self._commit, goes_on=self._goes_on)

    def _take_in_runs(self, connection: sqlite3.Connection) -> None:
        """Note the runs that have a folder, in a database that was made anew."""
        if connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0:
            for run in kept_copies(self.folder / RUNS):
                connection.execute(*changed(run))

    def _commit(self, items: Sequence[Change | Lease | Line], settle: bool) -> None:
        """Write a batch: the database first, then columns where they are many, old or wanted."""
        changes = [item for item in items if isinstance(item, Change | Lease)]
        if changes:
            try:
                self._apply(changes)
            except StoreFull as full:
                if self._goes_on:
                    raise StoreFull(full.what, remedy="make room, then give the last answer again") from full
                raise StoreFull(f"{full.what}, {self.paid} answers safe", remedy=full.remedy) from full
        for item in items:
            if isinstance(item, Line):
                self._rows[item.kind, item.run].append(item.text)
                self._size += len(item.text)
        if settle or self._size >= BATCH or time.monotonic() - self._since >= LATEST:
            self._write_columns()

    def _apply(self, changes: Sequence[Change | Lease]) -> None:
        assert self._writing is not None
        lines: dict[LineFile, list[str]] = defaultdict(list)
        for change in changes:
            if change.file is not None:
                lines[change.file].append(change.line)
        with self._writing.transaction() as connection:
            for file in lines:
                file.catch_up(self.folder, connection)
            for change in changes:
                change.apply(connection)
            for file, new in lines.items():
                file.append(self.folder, connection, new)

    def _write_columns(self) -> None:
        for kind in KINDS:
            for (_, run), rows in [(key, rows) for key, rows in self._rows.items() if key[0] is kind]:
                self._columns.write(kind, run, rows)
        self._rows.clear()
        self._size, self._since = 0, time.monotonic()

    def _claim(self, run: str) -> None:
        if run not in self._claims:
            self._claims[run] = Claim(self.folder / RUNS / run)

    def _note(self, run: str, **changes: Any) -> None:
        """Change a run's record; ignore runs that the database doesn't have."""
        with self._database.transaction() as connection:
            cursor = connection.execute(f"{ALL_RUNS} WHERE id = ?", [run])
            names = [column[0] for column in cursor.description]
            row = cursor.fetchone()
            if row is None:
                return
            noted = Run.read(dict(zip(names, row, strict=True))).model_copy(update=changes)
            connection.execute(*changed(noted))
        keep_copy(self.folder / RUNS, noted)


@contextmanager
def _before_a_run(folder: Path) -> Iterator[None]:
    """Advise no resume of what has not begun."""
    try:
        yield
    except OSError as failure:
        raise write_failed(folder, failure) from failure
    except StoreFull as full:
        raise StoreFull(full.what, remedy="make room, then run the command again") from full


def _refuse_older(folder: Path) -> None:
    for name in OLDER:
        if (folder / name).exists() and not (folder / FILE).exists():
            raise WrongUse(
                f"an earlier pollex made this store ({name}), and this one can't read it",
                where=str(folder),
                remedy="it was left as it is: move it away, or name a new folder",
                option="store",
            )


def _make_private(folder: Path) -> None:
    """Make folder and files unreadable to others, also where they were there before."""
    for each in (folder, folder / RUNS, folder / TEXTS):
        make_private(each)
    for file in folder.iterdir():
        if file.is_file() and file.stat().st_mode & 0o077:
            file.chmod(0o600)
