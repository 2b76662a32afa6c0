"""Commands that the browser started: progress, output, and how to end them."""

from __future__ import annotations

from starlette.responses import Response

from pollex.web import frame, links
from pollex.web.children import Child
from pollex.web.views import Data, Done, page, post


@page(f"{links.CHILDREN}/{{child}}", "child.html")
def shown(child: Child, as_json: bool) -> Data:
    """Show a command."""
    return state_of(child) if as_json else {}


@page(f"{links.CHILDREN}/{{child}}/live")
def live(child: Child) -> Response:
    """Return the part of the page that tells how far the command is."""
    ended = "again" if child.back == links.HOME else "1"
    return frame.page("child_live.html", headers={"X-Pollex-Ended": ended if child.over else ""}, child=child)


def state_of(found: Child) -> dict[str, object]:
    """Return what is known of a command, as JSON values."""
    return {"id": found.id, "state": found.state, "said": list(found.said), "told": found.told}


@post("/api/children/{child}/stop")
def stop(child: Child) -> Done:
    """End a command; what it has done is kept."""
    child.stop()
    return f"{links.CHILDREN}/{child.id}", state_of(child)
