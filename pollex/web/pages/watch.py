"""Folders that are looked at: what arrived, what came of it, and who is told."""

from typing import Annotated, Any

from pydantic import Field

from pollex.errors import PollexError
from pollex.web import links
from pollex.web.faults import Clash, Fault
from pollex.web.forms import Short
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint
from pollex.web.uploads import make_refusal
from pollex.web.views import Data, Done, page, post
from pollex.web.watching import DEFAULT_MINUTES, get_watcher

Place = Annotated[str, Field(max_length=2000)]
Minutes = Annotated[float, Field(ge=0.1, le=10_000)]
LAST = 100
"""Files that the page lists."""


@page(links.WATCH, "watch.html", here="Watch")
def watch(site: Site, as_json: bool) -> Data:
    """Show the folders that are looked at, the files that arrived, and the alerts."""
    watcher = get_watcher(site)
    files = list(reversed(watcher.files.values()))
    alerts = list(reversed(watcher.alerts))
    if as_json:
        # programs get names of files, and no paths of the server
        rows: list[dict[str, Any]] = []
        for file in files:
            rows.append(
                {"file": file.path.rpartition("/")[2], "state": file.state, "run": file.run}
                | {"why": file.why}
            )

        return {
            "files": rows,
            "alerts": alerts,
            "told": watcher.told,
        }

    return {
        "folders": list(watcher.folders.values()),
        "refusals": {
            folder.path: watcher.refusal_of(folder) for folder in watcher.folders.values()
        },
        "offer": watcher.offer,
        "files": files[:LAST],
        "total": len(files),
        "alerts": alerts,
        "webhook": watcher.webhook,
        "with_text": watcher.with_text,
        "secret": watcher.secret,
        "told": watcher.told,
        "has_roots": bool(site.roots.folders),
        "has_set": site.set_at_home() is not None,
        "minutes": DEFAULT_MINUTES,
    }


@post("/api/watch/folders")
def add(site: Site, place_: Place, minutes: Minutes = DEFAULT_MINUTES) -> Done:
    """Look at a folder from now on, under those that the server may read."""
    try:
        path = site.roots.require_path(place_.strip())
    except PollexError as error:
        raise make_refusal(error) from error

    if not path.is_dir():
        raise Fault(
            "this is no folder",
            hint="name the folder in which logs arrive",
        )

    get_watcher(site).add(path, minutes)
    return links.WATCH, {"folders": len(get_watcher(site).folders)}


@post("/api/watch/removal")
def remove(site: Site, place_: Place) -> Done:
    """Look at a folder no more."""
    watcher = get_watcher(site)
    folder = watcher.folders.get(place_)
    if folder is not None and folder.is_from_start:
        raise Clash(
            "the server's start named it",
            hint="start the server without it",
        )

    watcher.remove(place_)
    return links.WATCH, {"folders": len(watcher.folders)}


@post("/api/watch/offer")
def answer_offer(site: Site, confirmed: Short, is_wanted: bool = False) -> Done:
    """Say yes or no to folders and an address that the store names and this machine didn't."""
    watcher = get_watcher(site)
    if watcher.offer is None or watcher.offer.digest != confirmed:
        raise Clash("this is not what waits for an answer", hint="load the page again")

    try:
        watcher.answer_offer(is_wanted=is_wanted)
    except PollexError as error:
        raise make_refusal(error) from error

    return links.WATCH, {"folders": len(watcher.folders)}


@post("/api/watch/webhook")
def webhook(site: Site, url: Place = "", with_text: bool = False) -> Done:
    """Tell an address of alerts from now on; an empty one for none."""
    address = url.strip()
    # checked now for whoever types it, and again before each message
    if address:
        require_endpoint(site, address)

    get_watcher(site).set_webhook(address, with_text=with_text)
    return links.WATCH, {"webhook": bool(address)}


@post("/api/watch/seen")
def seen(site: Site) -> Done:
    """Note that people have seen the alerts: they no longer stand first on the home page."""
    get_watcher(site).mark_seen()
    return links.HOME, {"seen": True}
