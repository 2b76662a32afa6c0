"""Pages from templates, style sheets and scripts under versioned names, and error pages."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Scope

from pollex.errors import PollexError, StoreBusy
from pollex.reports.page import environment as of_reports
from pollex.reports.page import style_of
from pollex.rubrics.worth import doubt
from pollex.web import links, words
from pollex.web.faults import status_of

SHARED_STYLES = ("tokens.css", "parts.css")
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

PAGES = (
    ("Home", links.HOME, "h"),
    ("Runs", links.RUNS, "r"),
    ("Conversations", links.CONVERSATIONS, "c"),
    ("Rubric sets", links.SETS, "s"),
    ("Label", links.LABEL, "l"),
    ("Talk", links.TALK, "t"),
    ("Waiting", links.WAITING, "w"),
    ("Calibration", links.CALIBRATION, "k"),
)
"""Name, address, and the key behind `g`."""


@cache
def environment() -> Environment:
    """Make the template environment: that of the reports, with the application's links."""
    reports = of_reports()
    assert reports.loader is not None, "the reports have templates"
    ours = PrefixLoader({"web": PackageLoader("pollex.web", "templates")})
    made = reports.overlay(loader=ChoiceLoader([ours, reports.loader]))
    made.filters = made.filters | {each.__name__: each for each in (*words.FILTERS, doubt)}
    made.globals = made.globals | {"links": links, "static": static, "PAGES": PAGES, "guest": None}
    return made


@cache
def static_files() -> dict[str, bytes]:
    """Read all static files, by name."""
    ours = files("pollex.web") / "static"
    found = {file.name: file.read_bytes() for file in ours.iterdir() if file.name.rpartition(".")[2] in TYPES}
    return found | {name: style_of(name).encode() for name in SHARED_STYLES}


@cache
def edition() -> str:
    """Compute a digest of all static files, which import each other by name."""
    kept = static_files()
    return hashlib.sha256(b"\0".join(name.encode() + kept[name] for name in sorted(kept))).hexdigest()[:12]


def static(name: str) -> str:
    """Link to a static file; the address changes with the files."""
    return f"{links.STATIC}/{edition()}/{name}"


def static_response(wanted: str, name: str) -> Response:
    """Answer with a static file; one of this edition never changes."""
    body = static_files().get(name)
    if body is None:
        return Response("there is no such file", 404, media_type="text/plain")
    kept = "public, max-age=31536000, immutable" if wanted == edition() else "no-store"
    return Response(body, media_type=TYPES[name.rpartition(".")[2]], headers={"Cache-Control": kept})


def fill(template: str, **data: Any) -> str:
    """Fill a template of the application."""
    return environment().get_template(f"web/{template}").render(data)


def page(template: str, http: int = 200, headers: dict[str, str] | None = None, **data: Any) -> Response:
    """Answer with a page."""
    return HTMLResponse(fill(template, **data), http, headers)


def wants_json(scope: Scope) -> bool:
    """Return whether the client wants JSON rather than pages, as forms do that are sent without a script."""
    accepted = Headers(scope=scope).get("accept", "")
    return accepted == "application/json" or (scope["path"].startswith("/api/") and "text/html" not in accepted)


def refusal(scope: Scope, status: int, what: str, remedy: str, where: str = "") -> Response:
    """Answer with what was wrong, where, and what to do."""
    if wants_json(scope):
        told = {"ok": False, "error": what, "where": where, "remedy": remedy, "status": status}
        return JSONResponse(told, status)
    lost = scope["method"] == "POST" and status >= 500
    return page("fault.html", status, code=status, what=what, remedy=remedy, where=where, lost=lost, here="", site="")


def failure(scope: Scope, error: PollexError) -> Response:
    """Answer with an error of ours; a remedy names no option that whoever looks at a page can't give."""
    remedy = "wait until it has ended, then send it again" if isinstance(error, StoreBusy) else error.advice
    return refusal(scope, status_of(error), error.what, remedy, error.where)
