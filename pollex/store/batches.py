"""Providers' batches, in the store: which calls each has, and its id as soon as there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pollex.gateway.batches.provider import Line, Submission
from pollex.store.database import Change
from pollex.store.store import Store

_COLUMNS = "digest, provider, place, model, intended, size, id"


class StoreBook:
    """Fulfils `gateway.batches.desk.Book`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, place: str, model: str) -> list[Submission]:
        """See `Book`."""
        sql = f"SELECT {_COLUMNS} FROM batches WHERE place = ? AND model = ? AND NOT closed ORDER BY intended"
        return [Submission(**row) for row in self._store.rows(sql, [place, model])]

    def lines(self, digest: str) -> list[Line]:
        """See `Book`."""
        sql = "SELECT key, attempt, stage, item FROM batched JOIN calls USING (key, attempt) WHERE digest = ?"
        return [_line(row) for row in self._store.rows(sql, [digest])]

    async def intend(self, submission: Submission, lines: Sequence[Line]) -> None:
        """See `Book`."""
        about = vars(submission)
        sql = f"INSERT INTO batches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        kept = [Change(sql, [about[name] for name in _COLUMNS.split(", ")])]
        kept += [Change("INSERT INTO batched VALUES (?, ?, ?)", [about["digest"], x.key, x.attempt]) for x in lines]
        await self._store.change(*kept)

    async def created(self, digest: str, id_: str) -> None:
        """See `Book`."""
        await self._store.change(Change("UPDATE batches SET id = ? WHERE digest = ?", [id_, digest]))

    async def close(self, digest: str) -> None:
        """See `Book`."""
        await self._store.change(
            Change("UPDATE batches SET closed = 1 WHERE digest = ?", [digest]),
            Change("DELETE FROM batched WHERE digest = ?", [digest]),
        )


def _line(row: dict[str, Any]) -> Line:
    return Line(row["key"], row["attempt"], row["stage"] or "", row["item"] or "", b"")
