"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping
from typing import Any

from pollex.rooms.judge.web.links import WAITING
from pollex.store.runs import Run
from pollex.web.hooks import MenuEntry, PagePanel, WaitingWork, make_has_run, make_run_figures
from pollex.web.site import Site


def ratings_shown(site: Site, run: Run) -> Mapping[str, Any] | None:
    """Return what the panel on the ratings of a run shows."""
    from pollex.rooms.judge.web.ratings import ratings_of  # such pages alone need it

    ratings = ratings_of(site, run)
    return ratings and {"ratings": ratings}


def doubtful_cases(site: Site, run: Run) -> int:
    """Count the cases of a run that wait for people."""
    from pollex.rooms.judge.web.pages.waiting import waiting_in  # as above

    tallied = waiting_in(site, run)
    return len(tallied.waiting) if tallied else 0


HOOKS = (
    MenuEntry("Waiting", WAITING, "w", 160, make_has_run("judge")),
    PagePanel("run.html", "web/judged.html", make_run_figures("judge", ratings_shown)),
    WaitingWork("judge", "doubtful case", doubtful_cases, lambda run: f"{WAITING}/{run.id}"),
)
