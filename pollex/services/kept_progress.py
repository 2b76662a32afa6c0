"""Progress of a run kept in the store, for other processes and the browser."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from pollex.graphs.context import Progress
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import unpacked

OFTEN = 0.25
"""Seconds between two notes at least."""


class KeptProgress:
    """Progress that is shown, and kept once a run has begun.

    Args:
        used: Calls, tokens and outcomes so far, JSON values.
    """

    def __init__(self, shown: Progress, store: Store, used: Callable[[], Mapping[str, Any]]) -> None:
        self._shown, self._store, self._used = shown, store, used
        self._stages: dict[str, dict[str, int]] = {}
        self._run, self._kept, self._at = "", dict[str, Any](), 0.0
        self._tracer: Tracer | None = None
        self._earlier: float | None = 0.0

    def watch(self, tracer: Tracer) -> None:
        """Keep what a tracer counts, too: nodes, and the last errors."""
        self._tracer = tracer

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage; `done` of its items were done before a resume."""
        self._stages[stage] = {"done": done, "total": total}
        self._shown.start(stage, total, done)
        self.keep()

    def advance(self, stage: str, by: int = 1) -> None:
        """Count items of a stage as done."""
        if stage in self._stages:
            self._stages[stage]["done"] += by
        self.keep()
        self._shown.advance(stage, by)

    def note(self, text: str) -> None:
        """Show a line to the user."""
        self._shown.note(text)

    def keep(self, *, last: bool = False) -> None:
        """Store the progress if it changed, at most every `OFTEN` seconds except the last time."""
        if not self._run or (not last and time.monotonic() - self._at < OFTEN):
            return
        self._at = time.monotonic()
        used = dict(self._used())
        found: dict[str, Any] = {
            "stages": {name: dict(stage) for name, stage in self._stages.items()},
            "used": used,
        }
        if self._earlier != 0:  # a resumed run: what it used is since then
            found["cost"] = _together(self._earlier, cost_of(used))
        if self._tracer is not None:
            found["nodes"] = {name: asdict(counted) for name, counted in self._tracer.nodes.items()}
            found["errors"] = list(self._tracer.errors)
        if found != self._kept:
            self._store.pulse(self._run, found)
            self._kept = found

    @asynccontextmanager
    async def of_run(self, run: str) -> AsyncIterator[None]:
        """Keep it while a run goes on, also while its stages wait for calls."""
        self._run = run
        before = self._store.value("SELECT payload FROM progress WHERE run = ?", [run])
        self._earlier = spent(unpacked(before)) if before else 0.0

        async def beat() -> None:
            while True:
                self.keep()
                await asyncio.sleep(OFTEN)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            self.keep(last=True)
            self._run = ""


def cost_of(used: Mapping[str, Any]) -> float | None:
    """Return the cost of calls; None if a price or a token count is missing."""
    cost: float | None = used.get("cost", None if used.get("sent") else 0.0)
    return cost


def spent(payload: Mapping[str, Any]) -> float | None:
    """Return the cost of a run so far, over all its starts; None if unknown."""
    cost: float | None = payload["cost"] if "cost" in payload else cost_of(payload.get("used", {}))
    return cost


def _together(earlier: float | None, cost: float | None) -> float | None:
    return None if earlier is None or cost is None else earlier + cost
