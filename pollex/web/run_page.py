"""What a run did, added up in SQL: nodes with their times, activity over time, calls and errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from pollex.measures.arrays import Floats
from pollex.store.line_files import read_line
from pollex.store.runs import Run
from pollex.store.store import Store

BINS = 400
NODES = """
    SELECT name, kind, count(*) AS n, sum(ms) AS together, max(ms) AS longest, sum(error <> '') AS errors,
        min(started) AS began FROM spans WHERE run = ? GROUP BY name, kind ORDER BY began, count(*)
"""
QUANTILES = """
    SELECT name, min(CASE WHEN 2 * place >= n THEN ms END) AS median, min(CASE WHEN 20 * place >= 19 * n THEN ms END)
        AS most FROM (SELECT name, ms, row_number() OVER (PARTITION BY name ORDER BY ms) AS place,
            count(*) OVER (PARTITION BY name) AS n FROM spans WHERE run = ?) GROUP BY name
"""
EXTENT = """
    SELECT min(after) AS first, max(after + ms) AS last
    FROM (SELECT (julianday(started) - julianday(?2)) * 86400000.0 AS after, ms FROM spans WHERE run = ?1)
"""
ENDS = """
    SELECT name, CAST((after - ?3) / ?4 AS INTEGER) AS began, CAST((after + ms - ?3) / ?4 AS INTEGER) AS ended,
        count(*) AS n
    FROM (SELECT name, (julianday(started) - julianday(?2)) * 86400000.0 AS after, ms FROM spans WHERE run = ?1)
    WHERE after <= ?5 AND after + ms >= ?3 GROUP BY 1, 2, 3
"""
ERRORS = """
    SELECT name, error, count(*) AS n, min(item) AS item FROM spans WHERE run = ? AND error <> ''
    GROUP BY name, error ORDER BY n DESC LIMIT 100
"""


@dataclass(frozen=True)
class Node:
    """All spans of one name.

    Attributes:
        together: Milliseconds of all, added up; `median` and `most` (95 %) of one.
        active: How many were open at once, in `BINS` stretches of time; None without times.
    """

    name: str
    kind: str
    n: int
    together: float
    median: float
    most: float
    errors: int
    active: Floats | None


@dataclass(frozen=True)
class Times:
    """A run's nodes over a stretch of its time, in milliseconds since it began."""

    nodes: tuple[Node, ...]
    first: float
    last: float


def times_of(store: Store, run: Run, first: float | None = None, last: float | None = None) -> Times:
    """Add up a run's spans, over all of its time or a stretch of it."""
    (extent,) = store.rows(EXTENT, [run.id, run.started])
    if extent["first"] is None:
        return Times((), 0.0, 0.0)
    low = extent["first"] if first is None else first
    high = max(extent["last"] if last is None else last, low + 1)
    active = _active(store, run, low, high)
    quantiles = {row["name"]: row for row in store.rows(QUANTILES, [run.id])}
    nodes = [
        Node(
            name=row["name"],
            kind=row["kind"],
            n=row["n"],
            together=row["together"],
            median=quantiles[row["name"]]["median"],
            most=quantiles[row["name"]]["most"],
            errors=row["errors"],
            active=active.get(row["name"]),
        )
        for row in store.rows(NODES, [run.id])
    ]
    return Times(tuple(nodes), low, high)


def _active(store: Store, run: Run, low: float, high: float) -> dict[str, Floats]:
    """Count how many spans of each name touch each stretch: those begun by its end less those ended before it."""
    changes: dict[str, Floats] = {}
    for row in store.rows(ENDS, [run.id, run.started, low, (high - low) / BINS, high]):
        bins = changes.setdefault(row["name"], np.zeros(BINS + 1))
        bins[min(max(row["began"], 0), BINS - 1)] += row["n"]
        bins[min(max(row["ended"], 0) + 1, BINS)] -= row["n"]
    return {name: np.cumsum(bins)[:BINS] for name, bins in changes.items()}


def errors_of(store: Store, run: Run) -> list[dict[str, Any]]:
    """Return a run's errors by text, the most frequent first."""
    return store.rows(ERRORS, [run.id])


@cache
def drawn_graphs() -> dict[str, Any]:
    """Read the graphs as `make docs` keeps them: nodes, and edges with whether a node chooses them."""
    found: dict[str, Any] = json.loads((files("pollex.web") / "graphs.json").read_text("utf-8"))
    return found


CALL_ORDER = {
    "sent": "sent",
    "stage": "stage, sent",
    "item": "item, sent",
    "ms": "ms",
    "outcome": "outcome, sent",
    "attempt": "attempt, sent",
}
CALLS = """
    SELECT key, attempt, stage, item, sent, ended, outcome, reply,
        (julianday(ended) - julianday(sent)) * 86400000.0 AS ms
    FROM calls WHERE run = ? ORDER BY {order} LIMIT ? OFFSET ?
"""


@dataclass(frozen=True)
class Call:
    """A model call.

    Attributes:
        usage: Tokens as the endpoint counted them; None where it didn't.
        text: What the model wrote, or what came in its place.
    """

    key: str
    attempt: int
    stage: str
    item: str
    sent: str
    ms: float | None
    status: int | None
    problem: str
    usage: dict[str, int]
    text: str


def calls_of(store: Store, run: Run, order: str, *, down: bool, at: int, n: int) -> list[Call]:
    """Return a window of a run's calls."""
    sql = CALLS.format(order=", ".join(f"{part} DESC" if down else part for part in CALL_ORDER[order].split(", ")))
    return [read_call(row) for row in store.rows(sql, [run.id, n, at])]


def read_call(row: dict[str, Any]) -> Call:
    """Read a row of calls; one whose reply never came has none."""
    told = (read_line(row["reply"]) or {}) if row["reply"] else {}
    facts, body = told.get("outcome", {}), told.get("raw", "")
    answer = _json(body)
    return Call(
        key=row["key"],
        attempt=row["attempt"],
        stage=row["stage"] or "",
        item=row["item"] or "",
        sent=row["sent"] or "",
        ms=row["ms"],
        status=facts.get("status"),
        problem=facts.get("problem", "") or ("" if told else "no reply came"),
        usage=_usage(answer),
        text=_text(answer) or body,
    )


def request_of(store: Store, key: str) -> list[tuple[str, str]]:
    """Return a call's prompt, role and words of each message; empty where it was not kept."""
    body = _json(store.value("SELECT body FROM requests WHERE key = ?", [key]) or "")
    messages = body.get("messages", []) if isinstance(body, dict) else []
    return [(str(one.get("role", "")), _words(one.get("content"))) for one in messages if isinstance(one, dict)]


def settings_of(store: Store, key: str) -> dict[str, str]:
    """Return what a call asked for beside its messages."""
    body = _json(store.value("SELECT body FROM requests WHERE key = ?", [key]) or "")
    found = {name: value for name, value in body.items() if name != "messages"} if isinstance(body, dict) else {}
    return {name: json.dumps(value, ensure_ascii=False) for name, value in found.items()}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _words(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _usage(answer: Any) -> dict[str, int]:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    names = {"prompt_tokens": "in", "completion_tokens": "out"}
    return {word: usage[name] for name, word in names.items() if isinstance(usage, dict) and usage.get(name)}


def _text(answer: Any) -> str:
    try:
        return _words(answer["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError):
        return ""


def outline(nodes: Sequence[Node]) -> dict[str, Node]:
    """Return nodes by name."""
    return {node.name: node for node in nodes}
