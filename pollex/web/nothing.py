"""What pages say while no run has scored conversations: what would be there, and the command that fills them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pollex.errors import PollexError
from pollex.web import frame, links

WOULD = {
    links.CONVERSATIONS: (
        "Conversations",
        "Here are the conversations of a run, each with its thumb and its score, to filter, search and read.",
    ),
    links.CALIBRATION: (
        "How far the probabilities can be trusted",
        "Here is how often a thumb up came where it was predicted: in bands, by group and by week.",
    ),
    links.SHARE: (
        "How many of all conversations are good",
        "Here is an estimate of the share of good conversations, from the labels of a few.",
    ),
    links.CHECK: (
        "Has it become worse?",
        "Here are conditions on new conversations beside a baseline, and whether they hold.",
    ),
}
"""By address: the page's heading, and what would be there."""


def nothing_yet(request: Request, error: Exception) -> Response:
    """Answer for a page without anything to show; a program gets the error."""
    assert isinstance(error, PollexError)
    if request.url.path not in WOULD or frame.wants_json(request.scope):
        return frame.failure(request.scope, error)
    title, would = WOULD[request.url.path]
    here = next((name for name, to, _ in frame.PAGES if to == request.url.path), "")
    return frame.page("nothing.html", site="", here=here, title=title, would=would)
