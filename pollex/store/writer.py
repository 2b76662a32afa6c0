"""The way of a fact to the disk: the journal first where it is journaled, then the database; each in group commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import duckdb

from pollex.errors import StoreFull
from pollex.store.committer import Committer
from pollex.store.database import Database, write_error
from pollex.store.journal import Entry, Journal, Mark, Place
from pollex.store.tables import Row

LINGER = 0.2
"""Seconds that the database may lag behind while nobody waits for it."""


class Writer:
    """Two threads: one appends to the journal, the other inserts into the database.

    Args:
        noted: Called with each entry that the journal took, and its place.
        safe: How many paid answers are in the journal; told when the disk is full.
    """

    def __init__(
        self, database: Database, journal: Journal, noted: Callable[[Entry, Place], None], safe: Callable[[], int]
    ) -> None:
        self._database, self._journal, self._noted, self._safe = database, journal, noted, safe
        self._inserting: Committer[Entry | Mark] = Committer(self._insert, name="pollex-store", linger=LINGER)
        self._journaling: Committer[Entry] = Committer(self._append, name="pollex-journal")

    @property
    def failure(self) -> Exception | None:
        """Why nothing is written any more; None while all is well."""
        return self._journaling.failure or self._inserting.failure

    def put(self, rows: Iterable[Row]) -> None:
        """Queues facts; `flush` or `settle` tells when they are durable."""
        journaled, others = _sorted(rows)
        if journaled:
            self._journaling.put(journaled)
        if others:
            self._inserting.put(others)

    async def write(self, rows: Iterable[Row]) -> None:
        """Returns when the facts are durable and can be read."""
        self.put(rows)
        await self.settle()

    async def record(self, row: Row) -> None:
        """Returns when a journaled fact is in the journal: the database has it a little later."""
        await self._journaling.write([row.entry])

    async def settle(self) -> None:
        """Returns when all facts queued so far are durable and can be read."""
        await self._journaling.write(())
        await self._inserting.write(())

    def flush(self) -> None:
        """`settle` for code that isn't async."""
        self._journaling.flush()
        self._inserting.flush()

    def close(self) -> None:
        """Writes what is queued and ends the threads. Does not raise: `failure` tells."""
        self._journaling.close()
        self._inserting.close()

    def _append(self, entries: Sequence[Entry]) -> None:
        try:
            places = self._journal.append(entries)
        except StoreFull as full:
            raise self._with_count(full) from full
        for entry, place in zip(entries, places, strict=True):
            self._noted(entry, place)
        self._inserting.put([*entries, self._journal.end])

    def _insert(self, items: Sequence[Entry | Mark]) -> None:
        marks = [item for item in items if isinstance(item, Mark)]
        entries = (item for item in items if isinstance(item, Entry))
        try:
            self._database.insert(entries, marks[-1] if marks else None)
        except duckdb.Error as failure:
            error = write_error(self._database.path, failure)
            raise self._with_count(error) if isinstance(error, StoreFull) else error from failure

    def _with_count(self, full: StoreFull) -> StoreFull:
        return StoreFull(f"{full.what}, {self._safe()} answers safe", where=full.where, remedy=full.remedy)


def _sorted(rows: Iterable[Row]) -> tuple[list[Entry], list[Entry]]:
    journaled: list[Entry] = []
    others: list[Entry] = []
    for row in rows:
        (journaled if row.journaled else others).append(row.entry)
    return journaled, others
