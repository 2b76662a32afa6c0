"""The first page: what runs, what waits for people, what was learned."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollex.store.runs import Run
from pollex.web import frame, links
from pollex.web.forms import Nothing, query, site_of

LAST = 5


def home(request: Request) -> Response:
    """Show the last runs and the rubric set in use."""
    query(request, Nothing)
    site = site_of(request)
    every = site.runs()
    named = next(iter(site.sets().values()), None)
    return frame.page(
        "home.html",
        site=site.id,
        here="Home",
        runs=[(run, site.status(run)) for run in every[:LAST]],
        total=len(every),
        with_scores=next((run for run in every if run.command in SCORING), None),
        named=named,
        first=_first_rubrics(named.rubric_set.rubrics) if named else [],
    )


SCORING: tuple[str, ...] = ("score", "evaluate", "label", "learn", "refit")
"""Commands whose runs have scores."""


def _first_rubrics(rubrics: tuple[object, ...]) -> list[object]:
    return list(rubrics[:3])


def is_scoring(run: Run) -> bool:
    """Tell whether a run gives scores."""
    return run.command in SCORING


ROUTES = [Route(links.HOME, home)]
