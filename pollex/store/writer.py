"""The one thread of a store that writes: it commits all that has gathered while its last commit ran."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pollex.errors import StoreFull
from pollex.store.columns import PARQUET_ROW_TYPES, Columns, RowBlock, make_row_block
from pollex.store.database import (
    DATABASE_FILE_NAME,
    LOCK_TIMEOUT_SECONDS,
    LOCK_TIMEOUT_SECONDS_OF_REQUESTS,
    Database,
    SqlStatement,
)
from pollex.store.runs import CallLeaseRequest
from pollex.store.tables import ColumnRow, Row, make_insert_statement

MAX_BYTES_OF_COLUMN_PART = 8 << 20
"""Bytes of rows in memory that make a part."""
MAX_SECONDS_ROWS_STAY_IN_MEMORY = 10.0
"""Seconds after which rows in memory become a part."""
MAX_QUEUED_BYTES = 32 << 20
"""Bytes that may be queued: who puts more is held back, so memory stays bounded."""
ROW_OVERHEAD_BYTES = 256
"""Bytes that a row or a change takes beside its texts."""
SECONDS_FOR_ROWS_TO_GATHER = 0.2
"""Seconds that rows may gather while nobody waits for them."""


class StoredRow(NamedTuple):
    """A row for a Parquet file.

    Attributes:
        values: Of its columns, without lone surrogates.
        size: Bytes, roughly.
    """

    kind: type[ColumnRow]
    run: str
    values: tuple[object, ...]
    size: int


QueuedItem = SqlStatement | CallLeaseRequest | StoredRow | RowBlock
WriteFuture = Future[None] | asyncio.Future[None]


class Writer:
    """A thread with a connection of its own. The database is written before columns are.

    Attributes:
        failure: The first failure, which is final unless `goes_on`: those who wait get it, and so
            does everybody later.
        durable: Whether something durable was written since it was last set to False.

    Args:
        goes_on: Only those whose batch failed get the failure; what comes later is tried.
    """

    def __init__(self, folder: Path, columns: Columns, *, goes_on: bool = False) -> None:
        self._database = Database(
            folder / DATABASE_FILE_NAME,
            patience=LOCK_TIMEOUT_SECONDS_OF_REQUESTS if goes_on else LOCK_TIMEOUT_SECONDS,
        )
        self._columns = columns
        self._goes_on = goes_on
        self._changed = threading.Condition()
        self._items: list[QueuedItem] = []
        self._waiting: list[WriteFuture] = []
        self._queued = 0
        self._settling = False
        self._closing = False
        self._rows: dict[tuple[type[ColumnRow], str], list[tuple[object, ...]]] = defaultdict(list)
        self._blocks: list[RowBlock] = []
        self._size = 0
        self._since = time.monotonic()
        self.failure: Exception | None = None
        self.durable = False
        self._thread = threading.Thread(
            target=self._run,
            name="pollex-store",
            daemon=True,
        )
        self._thread.start()

    def put(
        self,
        items: Iterable[QueuedItem],
        *,
        wait: WriteFuture | None = None,
        settle: bool = False,
    ) -> None:
        """Queue items.

        Args:
            wait: Resolved when they, and all that was put before, are committed.
            settle: Whether `wait` is for all that was put to be readable.
        """
        items = list(items)
        size = sum(
            item.size if isinstance(item, StoredRow | RowBlock) else ROW_OVERHEAD_BYTES
            for item in items
        )
        with self._changed:
            # whoever puts more than fits waits for the thread
            self._changed.wait_for(
                lambda: self._queued < MAX_QUEUED_BYTES or self.failure is not None
            )
            if self.failure is not None:
                raise self.failure
            if self._closing:
                raise RuntimeError("the store is closed")
            self._items += items
            self._queued += size
            self._settling |= settle
            self._waiting += [] if wait is None else [wait]
            self._changed.notify_all()

    async def write(self, items: Iterable[QueuedItem], *, settle: bool = False) -> None:
        """Queue items and return when they, and all that was queued before, are committed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.put(items, wait=done, settle=settle)
        await done

    def flush(self, items: Iterable[QueuedItem] = ()) -> None:
        """Queue items and wait until all that was put is readable."""
        done: Future[None] = Future()
        self.put(items, wait=done, settle=True)
        done.result()

    def close(self) -> None:
        """Write what is queued and end the thread. Raises nothing: `failure` tells."""
        with suppress(Exception):
            self.flush()

        with self._changed:
            self._closing = True
            self._changed.notify_all()

        self._thread.join()
        self._database.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                # a short wait gathers more, unless somebody waits for it
                self._changed.wait_for(lambda: self._items or self._waiting or self._closing)
                self._changed.wait_for(
                    lambda: self._waiting or self._closing or self._queued >= MAX_QUEUED_BYTES // 2,
                    SECONDS_FOR_ROWS_TO_GATHER,
                )
                # all that is queued becomes one batch
                items = self._items
                waiting = self._waiting
                settle = self._settling
                ended = self._closing
                self._items = []
                self._waiting = []
                self._queued = 0
                self._settling = False
                self._changed.notify_all()

            # a failure is final, unless the store goes on: everybody gets it
            failure = self._failure_of(items, settle=settle)
            if failure is not None and not self._goes_on:
                with self._changed:
                    self.failure = failure
                    waiting += self._waiting
                    self._changed.notify_all()

            _wake_waiting(waiting, failure)
            if ended or self.failure is not None:
                return

    def _failure_of(self, items: Sequence[QueuedItem], *, settle: bool) -> Exception | None:
        """Write a batch; return what went wrong, whatever it is: those who wait must hear of it."""
        try:
            # the database first: what columns say may rest on it
            other_items = []
            for item in items:
                if not isinstance(item, StoredRow | RowBlock):
                    other_items.append(item)
            self._apply(other_items)
            for item in items:
                if isinstance(item, StoredRow):
                    self._rows[item.kind, item.run].append(item.values)
                elif isinstance(item, RowBlock):
                    self._blocks.append(item)

                self._size += item.size if isinstance(item, StoredRow | RowBlock) else 0

            # columns in large parts, but never too late
            if (
                settle
                or self._size >= MAX_BYTES_OF_COLUMN_PART
                or time.monotonic() - self._since >= MAX_SECONDS_ROWS_STAY_IN_MEMORY
            ):
                self._write_columns()
        except Exception as failure:
            return failure

        return None

    def _apply(self, changes: Sequence[SqlStatement | CallLeaseRequest]) -> None:
        if not changes:
            return

        # on the disk only where something has to be
        durable = any(change.durable for change in changes)
        try:
            with self._database.transaction(durable=durable) as connection:
                for change in changes:
                    change.apply(connection)
        except StoreFull as full:
            if self._goes_on:
                raise StoreFull(
                    full.what,
                    hint="make room, then give the last answer again",
                ) from full

            safe = self._database.value("SELECT count(*) FROM calls WHERE reply IS NOT NULL")
            raise StoreFull(f"{full.what}, {safe} answers safe", hint=full.hint) from full

        self.durable |= durable

    def _write_columns(self) -> None:
        # in the order of kinds, so that whoever finds a score finds its answers
        for kind in PARQUET_ROW_TYPES:
            for (_, run), rows in [
                (key, rows) for key, rows in self._rows.items() if key[0] is kind
            ]:
                self._columns.write(make_row_block(kind, run, rows))

            for block in [block for block in self._blocks if block.kind is kind]:
                self._columns.write(block)

        self._rows.clear()
        self._blocks.clear()
        self._size = 0
        self._since = time.monotonic()


def make_queued_row(row: Row | StoredRow | RowBlock) -> SqlStatement | StoredRow | RowBlock:
    """Return a row as it is queued."""
    if isinstance(row, StoredRow | RowBlock):
        return row
    if isinstance(row, ColumnRow):
        cells = row.cells
        return StoredRow(
            type(row),
            row.run,
            cells,
            ROW_OVERHEAD_BYTES + sum(len(cell) for cell in cells if isinstance(cell, str)),
        )

    return make_row_change(row)


def make_row_change(row: Row) -> SqlStatement:
    """Return the change that keeps a row."""
    values = row.values
    return SqlStatement(make_insert_statement(row.table, len(values)), values, row.durable)


def _wake_waiting(waiting: Sequence[WriteFuture], failure: Exception | None) -> None:
    """Wake all who wait: one call into each event loop, however many wait in it."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteFuture]] = defaultdict(list)
    for future in waiting:
        if isinstance(future, asyncio.Future):
            loops[future.get_loop()].append(future)
        else:
            _resolve_futures([future], failure)

    for loop, futures in loops.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_resolve_futures, futures, failure)


def _resolve_futures(futures: Sequence[WriteFuture], failure: Exception | None) -> None:
    for future in futures:
        if future.done():  # its task was cancelled
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)
