"""Runs: what was started, with what, and what became of it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from pollex.errors import StoreBusy
from pollex.store.folder import make_private
from pollex.store.lease import is_locked
from pollex.store.tables import damaged, packed

Status = Literal["unfinished", "interrupted", "failed", "partial", "done"]
"""`unfinished`: running now, or killed. `partial`: done, but some conversations could not be processed."""

FINISHED: tuple[Status, ...] = ("partial", "done")
"""What a resume has nothing to add to."""


class Run(BaseModel):
    """One run of a command.

    Attributes:
        id: Command, number, and four random hex digits: unique in all stores; a beginning will do.
        number: Runs of a store count from 1, whatever the clock says.
        fingerprint: Digests by name (data, settings, models, prompts): all that the result depends on.
        started: ISO 8601, UTC; `finished` likewise, None while the run is unfinished.
        roles: Who worked, `embedded` for example.
        result: What the run came to, as JSON values.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    number: int
    command: str
    arguments: dict[str, Any]
    fingerprint: dict[str, str]
    versions: dict[str, str]
    started: str
    finished: str | None = None
    status: Status = "unfinished"
    roles: tuple[str, ...] = ()
    result: Any = None

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Self:
        """Return the run of a row.

        Raises:
            StoreDamaged: It is none.
        """
        try:
            return cls(**dict(row) | {name: json.loads(row[name]) for name in JSON_COLUMNS})
        except (ValueError, TypeError) as damage:
            raise damaged("", f"run {row['id']} can't be read") from damage


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the parts in which two fingerprints differ, by name: `data: 1f… → 2e…`."""
    return [
        f"{part}: {before.get(part) or 'none'} → {now.get(part) or 'none'}"
        for part in sorted({*before, *now})
        if before.get(part) != now.get(part)
    ]


JSON_COLUMNS = ("arguments", "fingerprint", "versions", "roles", "result")
ALL_RUNS = (
    "SELECT id, number, command, arguments, fingerprint, versions, started, finished, status, roles, result FROM runs"
)


def changed(run: Run) -> tuple[str, list[Any]]:
    """Return the statement that keeps a run as it is now, and its values."""
    values = {name: packed(value) if name in JSON_COLUMNS else value for name, value in dict(run).items()}
    columns, places = ", ".join(values), ", ".join("?" * len(values))
    return f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({places})", list(values.values())


def read_runs(rows: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Return the runs of rows that `ALL_RUNS` gave."""
    return [Run.read(row) for row in rows]


class Claim:
    """An exclusive claim on a run by this process, held until `release` or exit.

    The lock is on the open file, not on the number written into it, so a killed process leaves no lock.

    Raises:
        StoreBusy: Another process, or another part of this one, works on it.
    """

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            self.release()
            raise StoreBusy(
                f"process {holder} works on {folder.name}",
                where=str(folder.parent.parent),
                remedy="wait until it ends",
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others work on it."""
        os.close(self._file)


def is_worked_on(folder: Path, run: str) -> bool:
    """Tell whether a process works on a run now; `folder` is that of all runs."""
    return is_locked(folder / run / "lock")
