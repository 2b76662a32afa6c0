"""What pages show, as JSON: runs with their times, calls and errors, histograms, rubric sets, agreement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pollex.services.precision import agreement
from pollex.services.set_differences import diff_sets
from pollex.web import links
from pollex.web.faults import NotThere
from pollex.web.forms import Form, Nothing, query, site_of
from pollex.web.listing import ListForm, listing_of
from pollex.web.model_calls import calls_of, price_of, read_call, request_of, settings_of
from pollex.web.opinions import asked_about, between, people_in, said_about, with_oneself
from pollex.web.pages.agreement import AgreementForm
from pollex.web.pages.runs import ENDED, CallForm, CallsForm, TimesForm, counted, failed, pulse_of, spans_kept
from pollex.web.pages.sets import DiffForm, RubricForm, rubric_of
from pollex.web.pages.waiting import given, run_that_waits, said_of
from pollex.web.queues import QUESTION
from pollex.web.run_page import errors_of, times_of

RUN = f"/api{links.RUNS}/{{run}}"


class HistogramForm(ListForm):
    """A list, and the figure to count."""

    of: Literal["netsat", "probability", "entropy", "turns"] = "netsat"


class SpansForm(Form):
    """A window of a run's spans."""

    name: str = ""
    item: str = ""
    sort: Literal["started", "ms", "name", "item"] = "started"
    down: bool = False
    at: int = Field(0, ge=0)
    n: int = Field(100, ge=1, le=500)


def run(request: Request) -> Response:
    """Return a run with what it was started with."""
    site = site_of(request)
    query(request, Nothing)
    found = site.run(request.path_params["run"])
    about = {"status": site.status(found), "counts": counted(site, found) | failed(site, found)}
    return _told(found.model_dump(mode="json") | about)


def tree(request: Request) -> Response:
    """Return a run's spans added up by name, in milliseconds."""
    site = site_of(request)
    query(request, Nothing)
    times = times_of(spans_kept(site, site.run(request.path_params["run"])))
    names = ("name", "kind", "n", "together", "median", "most", "errors")
    return _told({"nodes": [{name: getattr(node, name) for name in names} for node in times.nodes]})


def strips(request: Request) -> Response:
    """Return how many spans of each name were open at once, over a stretch of time."""
    site = site_of(request)
    found, form = site.run(request.path_params["run"]), query(request, TimesForm)
    low, high = (None if value is None else 1000 * value for value in (form.start, form.end))
    times = times_of(spans_kept(site, found), low, high)
    active = {node.name: node.active.astype(int).tolist() for node in times.nodes}
    return _told({"from": times.first / 1000, "to": times.last / 1000, "active": active})


def errors(request: Request) -> Response:
    """Return a run's errors by text, the most frequent first."""
    site = site_of(request)
    query(request, Nothing)
    return _told({"errors": errors_of(site.store, site.run(request.path_params["run"]))})


def live(request: Request) -> Response:
    """Return how far a run is; 304 if nothing has changed."""
    site = site_of(request)
    query(request, Nothing)
    found = site.run(request.path_params["run"])
    status, pulse = site.status(found), pulse_of(site, found)
    headers = {"ETag": f'"{found.id}.{pulse["beat"]}.{status}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return _told(pulse | {"status": status, "ended": status in ENDED}, headers)


def spans(request: Request) -> Response:
    """Return a window of a run's spans."""
    site = site_of(request)
    found, form = site.run(request.path_params["run"]), query(request, SpansForm)
    where = "FROM spans WHERE run = ?1 AND ?2 IN ('', name) AND ?3 IN ('', item)"
    given = [found.id, form.name, form.item]
    order = f"{form.sort} {'DESC' if form.down else 'ASC'}, rowid"  # one of four names
    rows = site.store.rows(
        f"SELECT id, parent, name, kind, item, started, ms, error {where} ORDER BY {order} LIMIT ?4 OFFSET ?5",
        [*given, form.n, form.at],
    )
    return _told({"total": site.store.value(f"SELECT count(*) {where}", given), "spans": rows})


def calls(request: Request) -> Response:
    """Return a window of a run's calls."""
    site = site_of(request)
    found, form = site.run(request.path_params["run"]), query(request, CallsForm)
    rows = calls_of(site.store, found, form.sort, down=form.down, at=form.at, n=form.n)
    total = site.store.value("SELECT count(*) FROM calls WHERE run = ?", [found.id])
    return _told({"total": total, "calls": [asdict(one) for one in rows]})


def call(request: Request) -> Response:
    """Return a call: its prompt by message, and every reply."""
    site = site_of(request)
    found, form = site.run(request.path_params["run"]), query(request, CallForm)
    sql = "SELECT *, (julianday(ended) - julianday(sent)) * 86400000.0 AS ms FROM calls WHERE run = ? AND key = ?"
    rows = site.store.rows(f"{sql} ORDER BY attempt", [found.id, form.key])
    if not rows:
        raise NotThere("this run made no such call", remedy="the list of its calls has those there are")
    price = price_of(site.store, found)
    told = {"messages": request_of(site.store, form.key), "settings": settings_of(site.store, form.key)}
    return _told(told | {"attempts": [asdict(read_call(row, price)) for row in rows]})


def histogram(request: Request) -> Response:
    """Return counts of a figure in bins, among all rows and among those found."""
    form = query(request, HistogramForm)
    found = listing_of(site_of(request), form).histogram(form.of)
    bins = {} if found is None else {name: values.tolist() for name, values in vars(found).items()}
    return _told({"of": form.of, "bins": bins})


def sets(request: Request) -> Response:
    """Return the rubric sets, without their rubrics."""
    site = site_of(request)
    query(request, Nothing)
    told = [
        {"id": one.id, "name": one.name, "run": one.run, "rubrics": len(one.rubric_set.rubrics)}
        for one in site.sets().values()
    ]
    return _told({"sets": told})


def one_set(request: Request) -> Response:
    """Return a rubric set as its file has it."""
    query(request, Nothing)
    named = site_of(request).set(request.path_params["set"])
    told = {"id": named.id, "name": named.name, "set": named.rubric_set.model_dump(mode="json")}
    return _told(told)


def one_rubric(request: Request) -> Response:
    """Return where a rubric came from: its reasons with their quotes, and what was merged into it."""
    form = query(request, RubricForm)
    found = site_of(request).set(request.path_params["set"]).rubric_set
    rubric = rubric_of(found, form.id)
    reasons = [one.model_dump(mode="json") for one in found.reasons if one.id in rubric.reason_ids]
    merged = [one.model_dump(mode="json") for one in found.dropped if one.duplicate_of == rubric.id]
    return _told({"rubric": rubric.model_dump(mode="json"), "reasons": reasons, "merged": merged})


def set_diff(request: Request) -> Response:
    """Return what two rubric sets differ in."""
    site, form = site_of(request), query(request, DiffForm)
    return _told(diff_sets(site.set(form.a).rubric_set, site.set(form.b).rubric_set).as_json())


def waiting(request: Request) -> Response:
    """Return the cases that a run of `judge` waits for, and the answers that it can take up."""
    site = site_of(request)
    query(request, Nothing)
    found, left = run_that_waits(site, request.path_params["run"])
    question = left.task.question
    options = [option.text for option in question.options]
    taken = given(left, said_of(site, found, left))
    return _told({"question": question.text, "options": options, "cases": [*left.conversations], "given": taken})


def agree(request: Request) -> Response:
    """Return how far annotators agree about a question."""
    site, form = site_of(request), query(request, AgreementForm)
    asked = asked_about(site.store)
    question = form.question or next(iter(asked), QUESTION)
    people = people_in(said_about(site.store, question))
    told = {
        "question": question,
        "questions": asked,
        "all": asdict(agreement(people)),
        "pairs": [{"people": [a, b], "alpha": asdict(one)} for a, b, one in between(people)],
        "with_oneself": asdict(with_oneself(site.store, question)),
        "each_with_oneself": {
            name: asdict(with_oneself(site.store, question, name)) for name in sorted({one.annotator for one in people})
        },
    }
    return _told(told)


def _told(told: Mapping[str, object], headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"ok": True, **told}, headers=headers)


ROUTES = [
    Route(RUN, run),
    Route(f"{RUN}/tree", tree),
    Route(f"{RUN}/strips", strips),
    Route(f"{RUN}/errors", errors),
    Route(f"{RUN}/live", live),
    Route(f"{RUN}/spans", spans),
    Route(f"{RUN}/calls", calls),
    Route(f"{RUN}/call", call),
    Route("/api/conversations/histogram", histogram),
    Route("/api/sets", sets),
    Route("/api/sets/diff", set_diff),
    Route("/api/sets/{set}", one_set),
    Route("/api/sets/{set}/rubric", one_rubric),
    Route("/api/waiting/{run}", waiting),
    Route("/api/agreement", agree),
]
