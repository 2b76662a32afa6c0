"""Runs: what was started, with what, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pollex.store.tables import RunRow, packed

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


class Difference(BaseModel):
    """A part in which two fingerprints differ; None where one of them lacks it."""

    model_config = ConfigDict(frozen=True)

    part: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        return f"{self.part}: {self.before or 'none'} → {self.now or 'none'}"


def fingerprint_diff(before: Mapping[str, str], now: Mapping[str, str]) -> list[Difference]:
    """The parts in which two fingerprints differ, by name."""
    return [
        Difference(part=part, before=before.get(part), now=now.get(part))
        for part in sorted({*before, *now})
        if before.get(part) != now.get(part)
    ]


ALL_RUNS = """
    SELECT runs.*, last.status, last."time", last.roles, last.result
    FROM runs LEFT JOIN (
        SELECT run, last(status ORDER BY rowid) AS status, last("time" ORDER BY rowid) AS "time",
            last(roles ORDER BY rowid) AS roles, last(result ORDER BY rowid) AS result
        FROM run_events GROUP BY run
    ) AS last ON last.run = runs.id
    ORDER BY runs.number
"""


def run_row(run: Run) -> RunRow:
    """A run as it is started."""
    return RunRow(
        id=run.id,
        number=run.number,
        command=run.command,
        arguments=packed(run.arguments),
        fingerprint=packed(run.fingerprint),
        versions=packed(run.versions),
        started=run.started,
    )


def read_runs(rows: Sequence[Mapping[str, Any]]) -> list[Run]:
    """What `ALL_RUNS` gave, as runs."""
    return [_read_run(row) for row in rows]


def _read_run(row: Mapping[str, Any]) -> Run:
    status = row["status"] or "unfinished"
    return Run(
        id=row["id"],
        number=row["number"],
        command=row["command"],
        arguments=json.loads(row["arguments"]),
        fingerprint=json.loads(row["fingerprint"]),
        versions=json.loads(row["versions"]),
        started=row["started"],
        finished=None if status == "unfinished" else row["time"],
        status=status,
        roles=tuple(row["roles"] or ()),
        result=json.loads(row["result"]) if row["result"] else None,
    )
