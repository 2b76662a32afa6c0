"""Commands that the browser started: progress, output, and how to end them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pollex.web import frame, links
from pollex.web.children import Child
from pollex.web.forms import Form, Nothing, answered, body, query, site_of


def child(request: Request) -> Response:
    """Show a command."""
    query(request, Nothing)
    found = site_of(request).children.find(request.path_params["child"])
    return frame.page("child.html", site=site_of(request).id, here="", child=found)


def live(request: Request) -> Response:
    """Return the part of the page that tells how far the command is."""
    query(request, Nothing)
    found = site_of(request).children.find(request.path_params["child"])
    ended = "again" if found.back == links.HOME else "1"
    return frame.page("child_live.html", headers={"X-Pollex-Ended": ended if found.over else ""}, child=found)


def as_json(request: Request) -> Response:
    """Return a command's state as JSON."""
    query(request, Nothing)
    return JSONResponse({"ok": True} | state_of(site_of(request).children.find(request.path_params["child"])))


def state_of(found: Child) -> dict[str, object]:
    """Return what is known of a command, as JSON values."""
    return {"id": found.id, "state": found.state, "said": list(found.said), "told": found.told}


class Stop(Form):
    """The form to end a command, which has no fields."""


async def stop(request: Request) -> Response:
    """End a command; what it has done is kept."""
    site = site_of(request)
    await body(request, Stop)
    site.require_writing()
    found = site.children.find(request.path_params["child"])
    found.stop()
    return answered(request, f"{links.CHILDREN}/{found.id}", state_of(found))


ROUTES = [
    Route(f"{links.CHILDREN}/{{child}}", child),
    Route(f"{links.CHILDREN}/{{child}}/live", live),
    Route("/api/children/{child}", as_json),
    Route("/api/children/{child}/stop", stop, methods=["POST"]),
]
