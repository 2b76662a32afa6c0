"""What pages draw, as JSON alone: a run's times, errors and spans, and histograms."""

from __future__ import annotations

from typing import Literal

from pollex.store.runs import Run
from pollex.web import links
from pollex.web.forms import Place, Window
from pollex.web.listing import ListForm, listing_of
from pollex.web.pages.runs import TimesForm, spans_kept
from pollex.web.run_page import errors_of, times_of
from pollex.web.site import Site
from pollex.web.views import Data, page

RUN = f"/api{links.RUNS}/{{run}}"


class HistogramForm(ListForm):
    """A list, and the figure to count."""

    of: Literal["netsat", "probability", "entropy", "turns"] = "netsat"


@page(f"{RUN}/tree")
def tree(site: Site, run: Run) -> Data:
    """Return a run's spans added up by name, in milliseconds."""
    times = times_of(spans_kept(site, run))
    names = ("name", "kind", "n", "together", "median", "most", "errors")
    return {"nodes": [{name: getattr(node, name) for name in names} for node in times.nodes]}


@page(f"{RUN}/strips")
def strips(site: Site, form: TimesForm, run: Run) -> Data:
    """Return how many spans of each name were open at once, over a stretch of time."""
    low, high = (None if value is None else 1000 * value for value in (form.start, form.end))
    times = times_of(spans_kept(site, run), low, high)
    active = {node.name: node.active.astype(int).tolist() for node in times.nodes}
    return {"from": times.first / 1000, "to": times.last / 1000, "active": active}


@page(f"{RUN}/errors")
def errors(site: Site, run: Run) -> Data:
    """Return a run's errors by text, the most frequent first."""
    return {"errors": errors_of(site.store, run)}


@page(f"{RUN}/spans")
def spans(
    site: Site,
    run: Run,
    name: str = "",
    item: str = "",
    sort: Literal["started", "ms", "name", "item"] = "started",
    down: bool = False,
    at: Place = 0,
    n: Window = 100,
) -> Data:
    """Return a window of a run's spans."""
    where = "FROM spans WHERE run = ?1 AND ?2 IN ('', name) AND ?3 IN ('', item)"
    given = [run.id, name, item]
    order = f"{sort} {'DESC' if down else 'ASC'}, rowid"  # one of four names
    rows = site.store.rows(
        f"SELECT id, parent, name, kind, item, started, ms, error {where} ORDER BY {order} LIMIT ?4 OFFSET ?5",
        [*given, n, at],
    )
    return {"total": site.store.value(f"SELECT count(*) {where}", given), "spans": rows}


@page("/api/conversations/histogram")
def histogram(site: Site, form: HistogramForm) -> Data:
    """Return counts of a figure in bins, among all rows and among those found."""
    found = listing_of(site, form).histogram(form.of)
    bins = {} if found is None else {name: values.tolist() for name, values in vars(found).items()}
    return {"of": form.of, "bins": bins}
