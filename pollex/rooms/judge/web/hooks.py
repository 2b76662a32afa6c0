"""What the room hangs into the browser beside its pages."""

from collections.abc import Mapping

from pollex.rooms.judge.web.links import WAITING_PATH
from pollex.store.runs import Run
from pollex.web.hooks import MenuEntry, PagePanel, WaitingWork, make_run_check, make_run_figures
from pollex.web.site import Site


def show_ratings(site: Site, run: Run) -> Mapping[str, object] | None:
    """Return what the panel on the ratings of a run shows."""
    from pollex.rooms.judge.web.ratings import show_run_ratings  # such pages alone need it

    ratings = show_run_ratings(site, run)
    return ratings and {"ratings": ratings}


def count_doubtful_cases(site: Site, run: Run) -> int:
    """Count the cases of a run that wait for people."""
    from pollex.rooms.judge.web.pages.waiting import find_waiting_tally  # as above

    tallied = find_waiting_tally(site, run)
    return len(tallied.waiting) if tallied else 0


HOOKS = (
    MenuEntry("Waiting", WAITING_PATH, "w", 160, make_run_check("judge")),
    PagePanel("run.html", "web/judged.html", make_run_figures("judge", show_ratings)),
    WaitingWork(
        "judge", "doubtful case", count_doubtful_cases, lambda run: f"{WAITING_PATH}/{run.id}"
    ),
)
