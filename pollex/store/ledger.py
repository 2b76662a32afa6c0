"""The ledger that the gateway asks for, on the store's journal."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from pollex.gateway.ledger import StoredCall
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import LedgerRow, now, packed


class StoreLedger:
    """Fulfils `gateway.ledger.Ledger`: intents and records return when the journal holds them.

    The database gets them a little later. Lookups read the journal at a place that is known, so answers take no memory.

    Args:
        tracer: Gets a span of kind `call` for every call, inside the span in which it was made.
    """

    def __init__(self, store: Store, tracer: Tracer | None = None) -> None:
        self._store, self._tracer = store, tracer
        self._begun: dict[tuple[str, int], tuple[str, float, Mapping[str, Any]]] = {}

    def trace(self, tracer: Tracer) -> None:
        """Writes the spans of calls from now on: for a run that begins after its ledger was made."""
        self._tracer = tracer

    async def lookup(self, key: str) -> StoredCall | None:
        """The last record of `key`, None when there is none."""
        place = self._store.calls.get(key)
        if place is None:
            return None
        payload = json.loads(json.loads(self._store.journal.read(place).row)["payload"])
        return StoredCall(key, payload["outcome"], payload["raw"])

    async def intend(self, key: str, attempt: int, about: Mapping[str, Any]) -> None:
        """Notes, durably before it returns, that a call is about to be sent."""
        if self._tracer is not None:
            self._begun[key, attempt] = (now(), time.perf_counter(), about)
        await self._store.writer.record(LedgerRow(key, "intent", attempt, now(), packed(dict(about))))

    async def record(self, key: str, attempt: int, outcome: Mapping[str, Any], raw: str) -> None:
        """Notes, durably before it returns, what came back."""
        payload = packed({"outcome": dict(outcome), "raw": raw})
        await self._store.writer.record(LedgerRow(key, "result", attempt, now(), payload))
        if self._tracer is not None and (begun := self._begun.pop((key, attempt), None)):
            started, clock, about = begun
            self._tracer.call(key, about, started=started, ms=1000 * (time.perf_counter() - clock))
