"""Folders that are looked at: what arrived, what came of it, and who is told."""

from typing import Annotated

from pydantic import Field

from pollex.errors import PollexError
from pollex.web import links
from pollex.web.faults import RequestError, VersionConflict
from pollex.web.forms import ShortText
from pollex.web.site import Site
from pollex.web.typed_endpoints import require_endpoint
from pollex.web.uploads import make_request_error
from pollex.web.views import NextPage, PageData, page, post
from pollex.web.watching import DEFAULT_MINUTES, get_watcher

FolderText = Annotated[str, Field(max_length=2000)]
Minutes = Annotated[float, Field(ge=0.1, le=10_000)]
MAX_FILES_LISTED = 100
"""Files that the page lists."""


@page(links.WATCH_PATH, "watch.html", here="Watch")
def show_watched_folders(site: Site, as_json: bool) -> PageData:
    """Show the folders that are looked at, the files that arrived, and the alerts."""
    watcher = get_watcher(site)
    if as_json:
        files = list(reversed(watcher.files.values()))
        # programs get names of files, and no paths of the server
        rows: list[PageData] = []
        for file in files:
            rows.append(
                {"file": file.path.rpartition("/")[2], "state": file.state, "run": file.run}
                | {"why": file.why}
            )

        return {
            "files": rows,
            "alerts": list(reversed(watcher.alerts)),
            "told": watcher.told,
        }

    return {
        **_list_what_arrived(site),
        "refusals": {
            folder.path: watcher.refusal_of(folder) for folder in watcher.folders.values()
        },
        "offer": watcher.offer,
        "webhook": watcher.webhook,
        "with_text": watcher.with_text,
        "secret": watcher.secret,
        "told": watcher.told,
        "has_roots": bool(site.roots.folders),
        "minutes": DEFAULT_MINUTES,
    }


@page(f"{links.WATCH_PATH}/live", "watch_live.html")
def show_what_arrived(site: Site) -> PageData:
    """Return the part of that page that says what arrived."""
    return _list_what_arrived(site)


def _list_what_arrived(site: Site) -> PageData:
    watcher = get_watcher(site)
    files = list(reversed(watcher.files.values()))
    return {
        "files": files[:MAX_FILES_LISTED],
        "total": len(files),
        "alerts": list(reversed(watcher.alerts)),
        "folders": list(watcher.folders.values()),
        "has_set": site.set_at_home() is not None,
    }


@post("/api/watch/folders")
def watch_folder(site: Site, place_: FolderText, minutes: Minutes = DEFAULT_MINUTES) -> NextPage:
    """Look at a folder from now on, under those that the server may read."""
    try:
        path = site.roots.require_path(place_.strip())
    except PollexError as error:
        raise make_request_error(error) from error

    if not path.is_dir():
        raise RequestError(
            "there is no such folder in those that the server was started with",
            hint="name the folder in which logs arrive, or “.” for the one of the start itself",
        )

    get_watcher(site).add(path, minutes)
    return links.WATCH_PATH, {"folders": len(get_watcher(site).folders)}


@post("/api/watch/removal")
def stop_watching_folder(site: Site, place_: FolderText) -> NextPage:
    """Look at a folder no more."""
    watcher = get_watcher(site)
    folder = watcher.folders.get(place_)
    if folder is not None and folder.is_from_start:
        raise VersionConflict(
            "the server's start named it",
            hint="start the server without it",
        )

    watcher.remove(place_)
    return links.WATCH_PATH, {"folders": len(watcher.folders)}


@post("/api/watch/again")
def try_file_again(site: Site, place_: FolderText, mark: ShortText) -> NextPage:
    """Score a file that failed once more."""
    get_watcher(site).try_again(place_, mark)
    return links.WATCH_PATH, {}


@post("/api/watch/offer")
def answer_offer(site: Site, confirmed: ShortText, is_wanted: bool = False) -> NextPage:
    """Say yes or no to folders and an address that the store names and this machine didn't."""
    watcher = get_watcher(site)
    if watcher.offer is None or watcher.offer.digest != confirmed:
        raise VersionConflict("this is not what waits for an answer", hint="load the page again")

    try:
        watcher.answer_offer(is_wanted=is_wanted)
    except PollexError as error:
        raise make_request_error(error) from error

    return links.WATCH_PATH, {"folders": len(watcher.folders)}


@post("/api/watch/webhook")
def set_webhook(site: Site, url: FolderText = "", with_text: bool = False) -> NextPage:
    """Tell an address of alerts from now on; an empty one for none."""
    address = url.strip()
    # checked now for whoever types it, and again before each message
    if address:
        require_endpoint(site, address)

    get_watcher(site).set_webhook(address, with_text=with_text)
    return links.WATCH_PATH, {"webhook": bool(address)}


@post("/api/watch/seen")
def mark_alerts_seen(site: Site) -> NextPage:
    """Note that people have seen the alerts: they no longer stand first on the home page."""
    get_watcher(site).mark_seen()
    return links.HOME_PATH, {"seen": True}
