"""Statistics of a run from its spans: nodes, activity and errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import numpy as np

from pollex.measures.arrays import Floats
from pollex.store.runs import Run
from pollex.store.store import Store

BINS = 400
PLACES = "SELECT min(rowid), max(rowid) FROM spans WHERE run = ?"
OF_RUN = "FROM spans WHERE rowid BETWEEN ?1 AND ?2 AND +run = ?3"
"""A run's spans lie together: read in their own order they come six times as fast as by the index on items."""

NAMES = f"SELECT DISTINCT name, kind {OF_RUN}"
SPANS = f"""
    SELECT group_concat(substr(started, 1, 26), ''), group_concat(CAST(round(1000 * ms) AS INTEGER)),
        group_concat(2 * CASE {{cases}} END + (error <> '')) {OF_RUN}
"""
"""Whole columns come as one text each, since a row in Python costs more than all else; names come as numbers, odd
where the span ended with an error."""

ERRORS = """
    SELECT name, error, count(*) AS n, min(item) AS item FROM spans WHERE run = ? AND error <> ''
    GROUP BY name, error ORDER BY n DESC LIMIT 100
"""


@dataclass(frozen=True, eq=False)
class Spans:
    """All spans of one name, as columns.

    Attributes:
        began: Milliseconds since the run began `[span]`; `ms` is how long each took.
        errors: How many ended with an error.
    """

    name: str
    kind: str
    began: Floats
    ms: Floats
    errors: int


def spans_of(store: Store, run: Run) -> list[Spans]:
    """Read a run's spans by name, in the order in which they began."""
    ((first, last),) = store.each(PLACES, [run.id])
    place = [first, last, run.id]
    names = list(store.each(NAMES, place))
    if not names:
        return []
    cases = " ".join(f"WHEN name = ?{2 * n + 4} AND kind = ?{2 * n + 5} THEN {n}" for n in range(len(names)))
    ((started, took, of),) = store.each(SPANS.format(cases=cases), [*place, *chain(*names)])
    zero = np.datetime64(datetime.fromisoformat(run.started).replace(tzinfo=None), "us")
    began, ms, marks = (_moments(started) - zero) / np.timedelta64(1, "ms"), _numbers(took) / 1000, _numbers(of)
    rows = [marks // 2 == n for n in range(len(names))]
    found = [
        Spans(name, kind, began[mine], ms[mine], int((marks[mine] % 2).sum()))
        for (name, kind), mine in zip(names, rows, strict=True)
    ]
    return sorted(found, key=lambda spans: float(spans.began.min()))


def _moments(text: str) -> Any:
    """Return times of 26 characters each, `2026-01-31T23:59:59.000000`, to the microsecond `[span]`."""
    digits = np.frombuffer(text.encode(), np.uint8).reshape(-1, 26)
    days, which = np.unique(np.ascontiguousarray(digits[:, :10]).view("S10")[:, 0], return_inverse=True)
    places = [11, 12, 14, 15, 17, 18, *range(20, 26)]
    worth = np.array([36000, 3600, 600, 60, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]) * 1e6
    since = (digits[:, places].astype(np.int64) - ord("0")) @ worth.round().astype(np.int64)
    return days.astype("datetime64[us]")[which] + since


def _numbers(text: str) -> Floats:
    return np.fromstring(text, sep=",")


@dataclass(frozen=True)
class Node:
    """All spans of one name.

    Attributes:
        together: Milliseconds of all, added up; `median` and `most` (95 %) of one.
        active: How many were open at once, in `BINS` stretches of time.
    """

    name: str
    kind: str
    n: int
    together: float
    median: float
    most: float
    errors: int
    active: Floats


@dataclass(frozen=True)
class Times:
    """A run's nodes over a stretch of its time, in milliseconds since it began."""

    nodes: tuple[Node, ...]
    first: float
    last: float


def times_of(spans: Sequence[Spans], first: float | None = None, last: float | None = None) -> Times:
    """Sum a run's spans, and count open ones over a period."""
    if not spans:
        return Times((), 0.0, 0.0)
    low = min(float(one.began.min()) for one in spans) if first is None else first
    end = max(float((one.began + one.ms).max()) for one in spans) if last is None else last
    high = max(end, low + 1)
    return Times(tuple(_node(one, low, high) for one in spans), low, high)


def _node(spans: Spans, low: float, high: float) -> Node:
    median, most = np.quantile(spans.ms, [0.5, 0.95], method="inverted_cdf")
    active = _active(spans.began, spans.ms, low, high)
    together = float(spans.ms.sum())
    return Node(spans.name, spans.kind, len(spans.ms), together, float(median), float(most), spans.errors, active)


def _active(began: Floats, ms: Floats, low: float, high: float) -> Floats:
    seen = (began <= high) & (began + ms >= low)
    width = (high - low) / BINS
    starts = np.clip((began[seen] - low) // width, 0, BINS - 1).astype(np.int64)
    ends = np.clip((began[seen] + ms[seen] - low) // width + 1, 0, BINS).astype(np.int64)
    changes = np.bincount(starts, minlength=BINS + 1) - np.bincount(ends, minlength=BINS + 1)
    return np.cumsum(changes)[:BINS].astype(np.float64)


def errors_of(store: Store, run: Run) -> list[dict[str, Any]]:
    """Return a run's errors by text, the most frequent first."""
    return store.rows(ERRORS, [run.id])


@cache
def drawn_graphs() -> dict[str, Any]:
    """Read the graphs that `make docs` draws: nodes, and edges with their kind."""
    found: dict[str, Any] = json.loads((files("pollex.web") / "graphs.json").read_text("utf-8"))
    return found


def outline(nodes: Sequence[Node]) -> dict[str, Node]:
    """Return nodes by name."""
    return {node.name: node for node in nodes}
