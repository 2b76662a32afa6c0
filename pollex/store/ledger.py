"""The ledger that the gateway asks, in the store."""

import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from pollex.gateway.batches.desk import BatchCall, BatchSubmission
from pollex.gateway.calls import CALL_LEASE_SECONDS, StoredReply
from pollex.store.database import SqlStatement
from pollex.store.runs import CALL_LEASED_BY_OTHER_SQL, CallLeaseRequest, is_lease_holder_alive
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import (
    format_current_time,
    make_damage_error,
    read_checked_line,
    write_checked_line,
)

_BATCH_COLUMNS = "digest, provider, place, model, intended, size, id"


class StoreBatchRecords:
    """Fulfils `gateway.batches.desk.BatchRecords`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, place: str, model: str) -> list[BatchSubmission]:
        sql = f"SELECT {_BATCH_COLUMNS} FROM batches WHERE place = ? AND model = ? AND NOT closed ORDER BY intended"
        submissions: list[BatchSubmission] = []
        for row in self._store.rows(sql, [place, model]):
            submissions.append(BatchSubmission(**row))

        return submissions

    def lines(self, digest: str) -> list[BatchCall]:
        sql = "SELECT key, attempt, stage, item FROM batched JOIN calls USING (key, attempt) WHERE digest = ?"
        rows = self._store.rows(sql, [digest])
        lines: list[BatchCall] = []
        for row in rows:
            lines.append(
                BatchCall(
                    row["key"],
                    row["attempt"],
                    row["stage"] or "",
                    row["item"] or "",
                    b"",
                )
            )

        return lines

    async def intend(self, submission: BatchSubmission, lines: Sequence[BatchCall]) -> None:
        values = vars(submission)
        sql = f"INSERT INTO batches ({_BATCH_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        statements = [SqlStatement(sql, [values[name] for name in _BATCH_COLUMNS.split(", ")])]
        for line in lines:
            statements.append(
                SqlStatement(
                    "INSERT INTO batched VALUES (?, ?, ?)",
                    [values["digest"], line.key, line.attempt],
                )
            )

        await self._store.change(*statements)

    async def created(self, digest: str, id_: str) -> None:
        await self._store.change(
            SqlStatement("UPDATE batches SET id = ? WHERE digest = ?", [id_, digest])
        )

    async def close(self, digest: str) -> None:
        await self._store.change(
            SqlStatement("UPDATE batches SET closed = 1 WHERE digest = ?", [digest]),
            SqlStatement("DELETE FROM batched WHERE digest = ?", [digest]),
        )


_INSERT_INTENT_SQL = (
    "INSERT OR REPLACE INTO calls (key, attempt, run, stage, item, sent, holder, until) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_REPLY_SQL = (
    "INSERT INTO calls (key, attempt, run, stage, item, sent, ended, outcome, reply) VALUES (?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT (key, attempt) DO UPDATE SET ended = excluded.ended, outcome = excluded.outcome, "
    "reply = excluded.reply"
)
_LEDGER_NUMBER_COUNTER = count()
_INSERT_REQUEST_SQL = "INSERT OR IGNORE INTO requests VALUES (?, ?)"


def make_reply_change(values: Mapping[str, Any]) -> SqlStatement:
    """Return the change that keeps a reply, on the disk, whether its call's intent is there or not."""
    about = (
        values.get(name) for name in ("key", "attempt", "run", "stage", "item", "sent", "ended")
    )
    return SqlStatement(
        _INSERT_REPLY_SQL,
        [*about, str(values["outcome"].get("kind", "")), write_checked_line(values)],
        durable=True,
    )


class StoreCallLedger:
    """Fulfils `gateway.calls.Ledger`: a call without a reply was possibly billed.

    Replies of other processes on the same store are found, too.

    Args:
        tracer: Gets a span of kind `call` for every call, inside the span in which it was made.
    """

    def __init__(self, store: Store, tracer: Tracer | None = None) -> None:
        self._store = store
        self._tracer = tracer
        self._number = next(_LEDGER_NUMBER_COUNTER)
        self._begun: dict[tuple[str, int], tuple[str, float, Mapping[str, object]]] = {}

    def trace(self, tracer: Tracer) -> None:
        """Write spans of calls from now on, for a run that begins later."""
        self._tracer = tracer

    async def lookup(self, key: str) -> StoredReply | None:
        """Return the last reply to `key`; None when there is none.

        Raises:
            StoreDamaged: It isn't what came.
        """
        # the last attempt that has a reply
        line = self._store.value(
            "SELECT reply FROM calls WHERE key = ? AND reply IS NOT NULL ORDER BY attempt DESC LIMIT 1",
            [key],
        )
        if line is None:
            return None

        values = read_checked_line(line)
        if values is None or values["key"] != key:
            raise make_damage_error(
                str(self._store.folder),
                f"the reply to call {key[:12]}… was changed",
            )

        return StoredReply(key, values["outcome"], values["raw"])

    async def intend(
        self,
        key: str,
        attempt: int,
        about: Mapping[str, object],
        seconds: float = CALL_LEASE_SECONDS,
    ) -> bool:
        """Record that a call is about to be sent, before returning; False where another process has it."""
        begun = format_current_time()
        run = self._tracer.run if self._tracer else None
        # the intent, and the lease that keeps others from sending it
        about_it = [
            about.get("stage"),
            about.get("item"),
            begun,
            self._holder,
            time.time() + seconds,
        ]
        changes = [SqlStatement(_INSERT_INTENT_SQL, [key, attempt, run, *about_it])]
        if self._store.prompts and (request := about.get("request")) is not None:
            changes.append(SqlStatement(_INSERT_REQUEST_SQL, [key, request]))

        lease = CallLeaseRequest(
            self._store.folder,
            key,
            attempt,
            self._holder,
            changes,
        )
        await self._store.change(lease)
        if lease.granted:
            self._begun[key, attempt] = begun, time.perf_counter(), about

        return lease.granted

    async def is_out(self, key: str) -> bool:
        """Return whether another process has the call out."""
        sql = f"SELECT holder FROM calls WHERE key = ? AND {CALL_LEASED_BY_OTHER_SQL}"
        held = self._store.rows(sql, [key, time.time(), self._holder])
        return any(is_lease_holder_alive(self._store.folder, row["holder"]) for row in held)

    async def record(
        self,
        key: str,
        attempt: int,
        outcome: Mapping[str, object],
        raw: str,
    ) -> None:
        """Note, on the disk before it returns, what came back."""
        # a reply to an intent of an earlier process has its row alone
        begun, clock, about = self._begun.pop(
            (key, attempt),
            ("", time.perf_counter(), {}),
        )
        ended = format_current_time()
        sql = "SELECT run, stage, item, sent FROM calls WHERE key = ? AND attempt = ?"
        (sent,) = (not begun and self._store.rows(sql, [key, attempt])) or [{}]
        values = {
            "key": key,
            "attempt": attempt,
            "run": sent.get("run") or (self._tracer.run if self._tracer else None),
            "stage": about.get("stage") or sent.get("stage"),
            "item": about.get("item") or sent.get("item"),
            "sent": begun or sent.get("sent") or ended,
            "ended": ended,
            "outcome": dict(outcome),
            "raw": raw,
        }
        await self._store.change(make_reply_change(values))

        if self._tracer is not None and begun:
            self._tracer.call(
                key,
                about,
                started=begun,
                ms=1000 * (time.perf_counter() - clock),
            )

    @property
    def _holder(self) -> str:
        return f"{self._store.sender.name}.{self._number}"
