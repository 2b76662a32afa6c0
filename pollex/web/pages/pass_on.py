"""Sharing: reports as one file, and links for people who read, label or talk."""

from pathlib import Path

from starlette.responses import Response

from pollex.store.outputs import OutputFile, list_outputs
from pollex.text import format_size
from pollex.web import links
from pollex.web.faults import NotFound
from pollex.web.guests import list_guest_links
from pollex.web.queues import list_queues
from pollex.web.site import Site
from pollex.web.views import PageData, page, send_file


@page(links.SHARING_PATH, "pass_on.html", here="Share")
def show_sharing(site: Site) -> PageData:
    """Show what can be shared: reports as files, and links for people."""
    reports = []
    for output, place in list_reports(site):
        reports.append((output.digest, place.name, output.run, format_size(place.stat().st_size)))

    return {
        "reports": reports,
        "has_runs": bool(site.runs()),
        "readers": list_guest_links(site.store, site.seal, links.HOME_PATH),
        "queues": list(list_queues(site.store)),
    }


def list_reports(site: Site) -> list[tuple[OutputFile, Path]]:
    """Return the pages that commands wrote and that are as they were written, the last one first."""
    placed = []
    for output in list_outputs(site.store):
        placed.append((output, output.place(site.store.folder)))

    reports: list[tuple[OutputFile, Path]] = []
    for output, place in reversed(placed):
        if place is not None and place.suffix == ".html" and output.is_unchanged(place):
            reports.append((output, place))

    return reports


@page(f"{links.SHARING_PATH}/report")
def send_report(site: Site, id_: str) -> Response:
    """Send a report as one file; only one that pollex wrote, byte for byte."""
    for output, place in list_reports(site):
        if output.digest == id_:
            return send_file(place.name, "text/html", place.read_bytes())

    raise NotFound("there is no such report", hint="its page lists those there are")
