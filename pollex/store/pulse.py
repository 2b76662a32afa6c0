"""How far a run is, for those who look on from another process: one row, written at most four times a second."""

from __future__ import annotations

import time
from typing import Any, Protocol

from pollex.store.store import Store
from pollex.store.tables import now

EVERY = 0.25
"""Seconds between two writes."""


class Told(Protocol):
    """Who is told of progress, too."""

    def start(self, stage: str, total: int, done: int = 0) -> None: ...
    def advance(self, stage: str, by: int = 1) -> None: ...
    def note(self, text: str) -> None: ...


class Pulse:
    """Progress of a run that is kept in its store, and passed on."""

    def __init__(self, store: Store, run: str, told: Told) -> None:
        self._store, self._run, self._told = store, run, told
        self._stages: dict[str, dict[str, Any]] = {}
        self._number, self._written, self._began = 0, 0.0, now()

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Note that a stage begins."""
        self._told.start(stage, total, done)
        self._stages[stage] = {"name": stage, "total": total, "done": done, "before": done, "began": now()}
        self._write(final=True)

    def advance(self, stage: str, by: int = 1) -> None:
        """Note that items of a stage are done."""
        self._told.advance(stage, by)
        if (known := self._stages.get(stage)) is not None:
            known["done"] += by
            self._write(final=known["done"] >= known["total"])

    def note(self, text: str) -> None:
        """Pass a note on."""
        self._told.note(text)

    def _write(self, *, final: bool) -> None:
        if not final and time.monotonic() - self._written < EVERY:
            return
        self._number, self._written = self._number + 1, time.monotonic()
        stages = list(self._stages.values())
        self._store.pulse(self._run, {"number": self._number, "began": self._began, "stages": stages})
