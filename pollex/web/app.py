"""The application: its routes, what becomes of errors, and pages that have nothing to show yet."""

import logging
import secrets
import time
from difflib import get_close_matches
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from pollex.errors import PollexError
from pollex.store.database import SCHEMA_VERSION
from pollex.web import frame, links
from pollex.web.faults import NothingToShow
from pollex.web.guard import AccessRules, Guard
from pollex.web.hooks import get_menu_name
from pollex.web.site import Site
from pollex.web.views import list_every_route

logger = logging.getLogger("pollex.web")


def make_application(site: Site, door: AccessRules) -> Guard:
    """Make the application of a store."""
    app = Starlette(
        routes=[*list_routes()],
        exception_handlers={
            NothingToShow: answer_nothing_yet,
            PollexError: _answer_our_error,
            HTTPException: _answer_refused_request,
            ClientDisconnect: _answer_broken_connection,
            Exception: _answer_unexpected_error,
        },
    )
    app.state.site = site
    return Guard(app, door)


def list_routes() -> list[BaseRoute]:
    """List all routes; those of a page stand with its function."""
    return [
        Route(links.HEALTH_PATH, answer_health),
        Route(f"{links.STATIC_PATH}/{{edition}}/{{name}}", answer_static),
        *list_every_route(),
    ]


def answer_health(request: Request) -> Response:
    """Report that the server runs; visitors with the token also get its store."""
    site: Site = request.app.state.site
    status: dict[str, object] = {"ok": True}
    if site.token is None or site.token in (
        request.cookies.get(f"pollex-{site.id}"),
        _get_bearer_token(request),
    ):
        status |= {
            "site": site.id,
            "pollex": version("pollex"),
            "schema": SCHEMA_VERSION,
            "uptime": round(time.monotonic() - site.started, 1),
        }

    return JSONResponse(status)


def answer_static(request: Request) -> Response:
    """Answer with a style sheet, a script or the icon."""
    name = request.path_params["name"]
    if (body := frame.read_static_files().get(name)) is None:
        return Response("there is no such file", 404, media_type="text/plain")

    # one of this edition never changes
    same = request.path_params["edition"] == frame.compute_static_digest()
    if same:
        caching = "public, max-age=31536000, immutable"
    else:
        caching = "no-store"

    return Response(
        body,
        media_type=frame.CONTENT_TYPES_BY_ENDING[name.rpartition(".")[2]],
        headers={"Cache-Control": caching},
    )


def _get_bearer_token(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _answer_our_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PollexError)
    return frame.answer_failure(request.scope, error)


def _answer_refused_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "there is no such page", 405: "this page takes no such request"}
    what = words.get(error.status_code, error.detail)
    allowed = (error.headers or {}).get("Allow", "")
    # what helps: addresses like the wrong one, or the methods that are taken
    if error.status_code == 404:
        hint = _list_similar_addresses(request.url.path)
    elif allowed:
        hint = f"it takes {allowed}"
    else:
        hint = ""

    return frame.answer_refusal(request.scope, error.status_code, what, hint)


def _answer_broken_connection(request: Request, error: Exception) -> Response:  # noqa: ARG001 - its contract
    """Answer whoever went away before all had come, so that nothing of it counts as a fault of ours."""
    return frame.answer_refusal(
        request.scope,
        400,
        "the request was cut off",
        "send it again",
    )


def _list_similar_addresses(path: str) -> str:
    every = []
    for route in list_routes():
        if isinstance(route, Route) and "GET" in (route.methods or ()):
            every.append(route.path)

    # people are led to pages, programs to addresses of JSON
    alike = []
    for route_path in every:
        if route_path.startswith("/api/") == path.startswith("/api/"):
            alike.append(route_path)

    close_matches = get_close_matches(path, alike, cutoff=0.5)
    if close_matches:
        return f"what there is: {', '.join(close_matches)}"
    return "the home page leads to all others"


def _answer_unexpected_error(request: Request, error: Exception) -> Response:
    # the number leads from the page to the entry in the log
    number = secrets.token_hex(4)
    logger.error("%s %s", number, request.scope["path"], exc_info=error)
    what = f"unexpected {type(error).__name__}"

    return frame.answer_refusal(
        request.scope,
        500,
        what,
        f"the server's output has more under {number}",
    )


EMPTY_PAGE_WORDS = {
    links.CONVERSATIONS_PATH: (
        "Conversations",
        "Here are the conversations of a run, each with its thumb and its score, to filter, search and read.",
    ),
    links.CALIBRATION_PATH: (
        "How far the probabilities can be trusted",
        "Here is how often a thumb up came where it was predicted: in bands, by group and by week.",
    ),
    links.SHARE_PATH: (
        "How many of all conversations are good",
        "Here is an estimate of the share of good conversations, from the labels of a few.",
    ),
    links.CHECK_PATH: (
        "Has it become worse?",
        "Here are conditions on new conversations beside a baseline, and whether they hold.",
    ),
}
"""By address: the page's heading, and what would be there."""


def answer_nothing_yet(request: Request, error: Exception) -> Response:
    """Answer for a page without anything to show; a program gets the error."""
    assert isinstance(error, PollexError)
    if request.url.path not in EMPTY_PAGE_WORDS or frame.wants_json(request.scope):
        return frame.answer_failure(request.scope, error)

    title, would = EMPTY_PAGE_WORDS[request.url.path]
    here = get_menu_name(request.url.path)
    return frame.answer_page(
        "nothing.html",
        site="",
        here=here,
        title=title,
        would=would,
    )
