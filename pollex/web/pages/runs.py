"""Runs: the list, one run with graph and times, its calls, and progress."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from pollex.runs.run import get_cost_of_run
from pollex.store.runs import Run
from pollex.store.tables import load_json
from pollex.web import links
from pollex.web.begun import find_child_of_run
from pollex.web.drawings import draw_distribution
from pollex.web.faults import NotFound
from pollex.web.forms import RowIndex, WindowSize
from pollex.web.hooks import (
    IS_READER,
    describe_outcome,
    find_waiting_work,
    list_panels,
    name_kind_of_run,
)
from pollex.web.kept_commands import read_kept_command
from pollex.web.likeness import measure_unlikeness
from pollex.web.listing import ListForm, make_listing
from pollex.web.model_calls import (
    find_price,
    list_asking_spans,
    list_calls,
    read_call,
    read_request,
    split_sealed,
)
from pollex.web.pages.run_states import NEW_RUBRIC_ROWS, NodeChange, describe_status, read_states
from pollex.web.results import replace_paths_by_titles
from pollex.web.run_page import (
    ERRORS_QUERY,
    MAX_STRIP_BINS,
    RunTimes,
    SpansOfName,
    draw_graph,
    draw_strip,
    read_drawn_graphs,
    read_spans,
    sum_times,
)
from pollex.web.scored_run import summarize_scores
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.views import PageData, page

ENDED_STATUSES = ("done", "partial", "failed", "interrupted", "killed")
STOPPED_STATUSES = ("failed", "interrupted", "killed", "waiting")
GRAPHS_BY_COMMAND = {"evaluate": "score", "label": "score"}
"""Command to the graph that it runs, where the names differ."""


CallOrder = Literal[
    "sent", "stage", "item", "ms", "outcome", "attempt", "in", "out", "cached", "cost"
]


def _list_shown_arguments(run: Run) -> PageData:
    """Return what a run was started with; readers aren't told where its command worked."""
    arguments = dict(run.arguments)
    if IS_READER.get():
        arguments.pop("folder", None)
    return arguments


@page(links.RUNS_PATH, "runs.html", here="Runs")
def show_runs(
    site: Site,
    as_json: bool,
    command: str | None = None,
    status: str | None = None,
) -> PageData:
    """List all runs; those that go on first, as cards."""
    every = [(run, site.status(run)) for run in site.runs()]
    # people also see that a run waits for them; to programs it is a run that ended early
    waits_for = {}
    if not as_json:
        waits_for = find_work_of_stopped_runs(site, every)
        every = [(run, describe_status(site, run, now)) for run, now in every]
        every = [(run, "waiting" if waits_for.get(run.id) else now) for run, now in every]

    shown = []
    for run, now in every:
        if command in (None, run.command) and status in (None, now):
            shown.append((run, now))

    if as_json:
        return {"runs": [run.model_dump(mode="json") | {"status": status} for run, status in shown]}

    counted = {run.id: count_parts_of_run(site, run) for run, _ in shown}
    return {
        "runs": shown,
        "total": len(every),
        "scoring": SCORING_COMMANDS,
        "commands": {run.command: name_kind_of_run(run) for run, _ in every},
        "came_to": {run.id: describe_outcome(site, run) for run, _ in shown},
        "waits_for": waits_for,
        # columns that only a model's runs fill
        "has_calls": any(parts["calls"] for parts in counted.values()),
        "has_errors": any(parts["errors"] for parts in counted.values()),
        "statuses": sorted({status for _, status in every}),
        "counted": counted,
        "costs": list_costs(site),
        "left": list_stopped_runs(shown),
        "folder": site.store.folder,
        "live": [
            (run, status, measure_progress(site, run))
            for run, status in every
            if status in ("running", "stalled")
        ],
    }


def find_work_of_stopped_runs(
    site: Site, runs: Sequence[tuple[Run, str]]
) -> dict[str, tuple[str, str]]:
    """Return what of runs that stopped waits for people, by the run's id: in words, and where it is answered."""
    work_by_run = {}
    for run, status in runs:
        if status in STOPPED_STATUSES and (work := find_waiting_work(site, run)):
            work_by_run[run.id] = work

    return work_by_run


def count_parts_of_run(site: Site, run: Run) -> PageData:
    """Return what a list says of a run: conversations, calls, and spans that ended with an error."""

    def count() -> PageData:
        (rows,) = site.store.ask(
            run.id,
            "SELECT count(DISTINCT id) AS conversations FROM conversations",
        )
        return (
            {"calls": site.store.value(CALL_COUNT_QUERY, [run.id])}
            | rows
            | {"errors": site.store.value(FAILED_SPAN_COUNT_QUERY, [run.id])}
        )

    return site.once("counts", run, count)


CALL_COUNT_QUERY = "SELECT count(*) FROM calls WHERE run = ?"
FAILED_SPAN_COUNT_QUERY = "SELECT count(*) FROM spans WHERE run = ? AND error <> ''"


def list_stopped_runs(runs: Sequence[tuple[Run, str]]) -> list[tuple[Run, str]]:
    """Return the runs that stopped before their end, of several alike the one that a resume goes on with."""
    # oldest first, so that of several alike the last one stays
    stopped = []
    for run, status in reversed(runs):
        if status in STOPPED_STATUSES:
            stopped.append((run, status))

    # the same command with the same settings is the same work
    last = {}
    for run, status in stopped:
        last[run.command, *sorted(run.fingerprint.items())] = (run, status)

    # latest first again, as in the list
    return [*reversed(last.values())]


def list_costs(site: Site) -> dict[str, float]:
    """Return what runs cost, by id: those whose calls all had known prices and counted tokens."""
    rows = site.store.rows("SELECT run, payload FROM progress")
    costs = {}
    for row in rows:
        costs[row["run"]] = get_cost_of_run(load_json(row["payload"]))

    # without known prices there is no cost to show
    return {run: cost for run, cost in costs.items() if cost}


def measure_progress(site: Site, run: Run) -> PageData:
    """Return a run's progress: stages with rate and remaining time, if known."""
    progress_rows = site.store.rows("SELECT beat, payload FROM progress WHERE run = ?", [run.id])
    # a run that has told nothing of itself yet
    if not progress_rows:
        return {
            "beat": "",
            "stages": [],
            "used": {},
            "nodes": {},
            "errors": [],
        }

    payload = load_json(progress_rows[0]["payload"])
    stages = []
    for name, stage in payload["stages"].items():
        stages.append(
            {
                "name": name,
                **stage,
                **_measure_pace(site, f"{run.id} {name}", stage),
            }
        )

    # runs of older versions have neither nodes nor errors in their progress
    status_fields = {
        "used": payload["used"],
        "nodes": payload.get("nodes", {}),
        "errors": payload.get("errors", []),
    }
    return {
        "beat": progress_rows[0]["beat"],
        "stages": stages,
        **status_fields,
    }


def _measure_pace(site: Site, key: str, stage: dict[str, int]) -> dict[str, float | None]:
    """Return the median rate of the last half minute, and the remaining time.

    Both are None in the first ten seconds.
    """
    # looks at this stage: their time, and what was done by then
    marks = site.seen.setdefault(key, deque())
    moment = time.monotonic()
    if not marks or moment - marks[-1][0] >= SECONDS_BETWEEN_LOOKS:
        marks.append((moment, stage["done"]))

    # the pace is that of the last half minute
    while moment - marks[0][0] > PACE_WINDOW_SECONDS:
        marks.popleft()

    rate = compute_median_rate(marks)
    if not rate:
        return {"rate": None, "left": None}
    # what remains in milliseconds; the rate is per second
    return {"rate": rate, "left": 1000 * (stage["total"] - stage["done"]) / rate}


def compute_median_rate(marks: Sequence[tuple[float, int]]) -> float | None:
    """Return the median rate between any two looks that are ten seconds apart; None if no two are.

    Source: Theil 1950, Sen 1968, doi:10.1080/01621459.1968.10480934. One pause or leap hardly moves
        it.
    """
    at, done = np.array(marks, dtype=np.float64).T
    # seconds from one look to another `[look, look]`
    took = at[:, None] - at
    # each pair once, as its other direction is negative; looks close together tell little
    far = took >= MIN_PACE_SECONDS
    if far.any():
        return float(np.median((done[:, None] - done)[far] / took[far]))
    return None


MIN_PACE_SECONDS, PACE_WINDOW_SECONDS, SECONDS_BETWEEN_LOOKS = 10.0, 30.0, 0.5
"""Seconds that have to be seen before anything is said of a pace, those that it is of, and between two looks."""


@page(f"{links.RUNS_PATH}/{{run}}", "run.html", here="Runs")
def show_run(
    site: Site,
    run: Run,
    as_json: bool,
    from_: float | None = None,
    to: float | None = None,
) -> PageData:
    """Show a run: what it was started with, its graph, its times."""
    status = site.status(run)
    if as_json:
        about = {
            "status": status,
            "counts": count_parts_of_run(site, run),
            "arguments": _list_shown_arguments(run),
        }
        return run.model_dump(mode="json") | about

    spans = get_spans(site, run)
    times = sum_times(spans, from_, to)
    states = read_states(site, run, status)
    # a run that people have to answer has stopped, too, and isn't interrupted
    waits_for = find_waiting_work(site, run) if status in STOPPED_STATUSES else None
    scored = summarize_scores(site, run)
    panels = list_panels("run.html", site, run=run)

    return {
        "scored": scored,
        # where something says what the run came to, how it ran comes beneath
        "folds": bool(scored or panels),
        "status": "waiting" if states.waiting or waits_for else status,
        "waits_for": waits_for,
        "times": times,
        "whole": from_ is None and to is None,
        "stretch": {"from": from_, "to": to},
        "goes_on": status not in ENDED_STATUSES,
        "arguments": replace_paths_by_titles(site, _list_shown_arguments(run)),
        "graph": draw_run_graph(run, times, states.changes),
        "states": states.changes,
        "trouble": states.trouble,
        "parent": run.arguments.get("parent"),
        "pool": states.waiting,
        "kept": read_kept_command(site, run),
        "child": site.children.last_of(links.link_to_run(run.id)),
        "working": find_child_of_run(site, run),
        "new": NEW_RUBRIC_ROWS,
        "strip": draw_strip,
        "bins": MAX_STRIP_BINS,
        "errors": site.once("errors", run, lambda: site.store.rows(ERRORS_QUERY, [run.id]))
        if any(span.errors for span in spans)
        else [],
        "counted": count_parts_of_run(site, run),
        "cost": list_costs(site).get(run.id),
        "folder": site.store.folder,
        "named": site.set_of(run),
        "scores": run.command in SCORING_COMMANDS,
        "panels": panels,
        "unlike": measure_unlikeness(site, run),
        "pulse": measure_progress(site, run) if status not in ENDED_STATUSES else None,
    }


def draw_run_graph(run: Run, times: RunTimes, states: Sequence[NodeChange] = ()) -> Markup | None:
    """Draw a run's graph with what ran in it; None for a command without one."""
    graph = read_drawn_graphs().get(GRAPHS_BY_COMMAND.get(run.command, run.command))
    told_by_node = {state.node: state.told for state in states}
    if graph:
        return draw_graph(graph, times.by_name, told_by_node)
    return None


def get_spans(site: Site, run: Run) -> list[SpansOfName]:
    """Return a run's spans by name.

    Those of a finished run are kept; others are read anew once twenty times as long has passed as
    reading took.
    """
    if run.finished is not None:
        return site.kept(
            ("spans", run.id, run.finished),
            lambda: read_spans(site.store, run),
        )

    last: PageData = site.kept(("spans so far", run.id), dict)
    began = time.monotonic()
    if began >= last.get("until", 0.0):
        last["spans"] = read_spans(site.store, run)
        last["until"] = time.monotonic() + 20 * (time.monotonic() - began)

    spans: list[SpansOfName] = last["spans"]
    return spans


@page(f"{links.RUNS_PATH}/{{run}}/graph", "graph_live.html")
@page(f"{links.RUNS_PATH}/{{run}}/times", "times_live.html")
def show_run_graph(
    site: Site,
    run: Run,
    request: Request,
    from_: float | None = None,
    to: float | None = None,
) -> PageData | Response:
    """Return the graph and the strips of a run so far; 304 if no span has come since."""
    status = site.status(run)
    spans = get_spans(site, run)
    # spans are only added, so that their number tells whether the page has changed
    headers = _make_headers(run, str(sum(len(span.ms) for span in spans)), status)
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)

    times = sum_times(spans, from_, to)
    return {
        "headers": headers,
        "graph": draw_run_graph(run, times),
        "times": times,
        "strip": draw_strip,
        "bins": MAX_STRIP_BINS,
    }


def _make_headers(run: Run, version: str, status: str) -> dict[str, str]:
    return {
        "ETag": f'"{run.id}.{version}.{status}"',
        "X-Pollex-Ended": "1" if status in ENDED_STATUSES else "",
    }


@page(f"{links.RUNS_PATH}/{{run}}/live", "live.html")
def show_run_live(
    site: Site,
    run: Run,
    request: Request,
    as_json: bool,
) -> PageData | Response:
    """Return the live part of a page; 304 if nothing has changed."""
    status = site.status(run)
    pulse = measure_progress(site, run)
    # progress is written at each beat, so that the beat tells whether the page has changed
    headers = _make_headers(run, pulse["beat"], status)
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)

    if as_json:
        shown = pulse
    else:
        shown = {"pulse": pulse, "folder": site.store.folder}

    return shown | {"headers": headers, "status": status, "ended": status in ENDED_STATUSES}


@page(
    f"{links.RUNS_PATH}/{{run}}/calls",
    "calls.html",
    here="Runs",
    api=f"/api{links.RUNS_PATH}/{{run}}/calls",
)
def show_calls(
    site: Site,
    run: Run,
    sort: CallOrder = "sent",
    down: bool = False,
    at: RowIndex = 0,
    n: WindowSize = 100,
) -> PageData:
    """List a run's calls."""
    calls = list_calls(site.store, run, sort, down=down, at=at, n=n)
    return {"total": site.store.value(CALL_COUNT_QUERY, [run.id]), "calls": calls}


@page(f"{links.RUNS_PATH}/{{run}}/call", "call.html", here="Runs")
def show_call(
    site: Site,
    run: Run,
    as_json: bool,
    key: str,
) -> PageData:
    """Show a call: the prompt message by message, every reply, and what asked it."""
    # all attempts of the call; SQLite's days become milliseconds
    rows = site.store.rows(
        "SELECT *, (julianday(ended) - julianday(sent)) * 86400000.0 AS ms FROM calls WHERE key = ? ORDER BY attempt",
        [key],
    )
    if not rows:
        raise NotFound(
            "the store has no such call",
            hint="the list of the run's calls has those there are",
        )

    replies = []
    for row in rows:
        replies.append(read_call(row, find_price(site.store, run)))

    messages, settings = read_request(site.store, key)
    if as_json:
        return {
            "messages": messages,
            "settings": settings,
            "attempts": replies,
        }

    return {
        "key": key,
        "replies": replies,
        "asked": list_asking_spans(site.store, run, replies[0]),
        "draw": draw_distribution,
        "messages": [(role, split_sealed(words)) for role, words in messages],
        "settings": settings,
    }


RUN_API_PATH = f"/api{links.RUNS_PATH}/{{run}}"


@page(f"{RUN_API_PATH}/tree")
def send_span_tree(site: Site, run: Run) -> PageData:
    """Return a run's spans added up by name, in milliseconds."""
    times = sum_times(get_spans(site, run))
    names = ("name", "kind", "n", "together", "median", "most", "errors")
    nodes = []
    for node in times.nodes:
        nodes.append({name: getattr(node, name) for name in names})
    return {"nodes": nodes}


@page(f"{RUN_API_PATH}/strips")
def send_strips(
    site: Site,
    run: Run,
    from_: float | None = None,
    to: float | None = None,
) -> PageData:
    """Return how many spans of each name were open at once, over a stretch of time in seconds."""
    times = sum_times(get_spans(site, run), from_, to)
    active = {}
    for name, node in times.by_name.items():
        active[name] = node.active.astype(int).tolist()

    return {
        "from": times.first / 1000,
        "to": times.last / 1000,
        "active": active,
    }


@page(f"{RUN_API_PATH}/errors")
def send_errors(site: Site, run: Run) -> PageData:
    """Return a run's errors by text, the most frequent first."""
    return {"errors": site.store.rows(ERRORS_QUERY, [run.id])}


@page(f"{RUN_API_PATH}/spans")
def send_spans(
    site: Site,
    run: Run,
    name: str = "",
    item: str = "",
    sort: Literal["started", "ms", "name", "item"] = "started",
    down: bool = False,
    at: RowIndex = 0,
    n: WindowSize = 100,
) -> PageData:
    """Return a window of a run's spans."""
    # an empty name or item leaves nothing out
    where = "FROM spans WHERE run = ?1 AND ?2 IN ('', name) AND ?3 IN ('', item)"
    parameters = [run.id, name, item]
    order = f"{sort} {'DESC' if down else 'ASC'}, rowid"  # one of four names
    rows = site.store.rows(
        f"SELECT id, parent, name, kind, item, started, ms, error {where} ORDER BY {order} LIMIT ?4 OFFSET ?5",
        [*parameters, n, at],
    )

    return {
        "total": site.store.value(f"SELECT count(*) {where}", parameters),
        "spans": rows,
    }


@page("/api/conversations/histogram")
def send_histogram(
    site: Site,
    form: ListForm,
    of: Literal["netsat", "probability", "entropy", "turns"] = "netsat",
) -> PageData:
    """Return counts of a figure in bins, among all rows and among those found."""
    histogram = make_listing(site, form).histogram(of)
    # values that are all the same have no bins
    bins = (
        {}
        if histogram is None
        else {name: values.tolist() for name, values in vars(histogram).items()}
    )
    return {"of": of, "bins": bins}
