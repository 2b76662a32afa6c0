"""What the core itself hangs into the browser."""

from collections.abc import Mapping
from typing import Any

from pollex.web import links
from pollex.web.hooks import (
    GuestDoor,
    MenuEntry,
    PagePanel,
    count_runs,
    list_calibrators_of_rooms,
    make_has_run,
)
from pollex.web.queues import get_queue
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.watching import get_watcher


def has_two_scored(site: Site) -> bool:
    """Return whether there are two runs to compare."""
    return count_runs(site, *SCORING_COMMANDS) > 1


def has_sets(site: Site) -> bool:
    """Return whether there is a rubric set."""
    return bool(site.sets())


def has_calibration(site: Site) -> bool:
    """Return whether probabilities can be looked at, of runs or of a calibrator."""
    return bool(list_calibrators_of_rooms(site)) or make_has_run(*SCORING_COMMANDS)(site)


def has_work(site: Site) -> bool:
    """Return whether something is at work, or stopped before its end."""
    is_busy = any(not child.over for child in site.children.by_id.values())
    return is_busy or bool(site.store.value(UNFINISHED))


def has_watched(site: Site) -> bool:
    """Return whether folders are looked at, or could be: there is a set to score by."""
    return bool(get_watcher(site).folders) or has_sets(site)


def list_open_alerts(site: Site, about: Mapping[str, Any]) -> Mapping[str, Any] | None:  # noqa: ARG001
    """Return what holds more often than before, until somebody has seen it."""
    alerts = get_watcher(site).open_alerts
    return {"alerts": alerts} if alerts else None


def require_queue(site: Site, id_: str) -> None:
    """Raise NotThere where there is no such queue."""
    get_queue(site.store, id_)


UNFINISHED = "SELECT count(*) FROM runs WHERE status NOT IN ('done', 'partial')"


HOOKS = (
    MenuEntry("Home", links.HOME, "h", 10),
    MenuEntry("Logs", links.LOGS, "o", 15),
    MenuEntry("Runs", links.RUNS, "r", 20, make_has_run()),
    MenuEntry("Conversations", links.CONVERSATIONS, "c", 30, make_has_run(*SCORING_COMMANDS)),
    MenuEntry("Rubrics", links.SETS, "s", 40, has_sets),
    MenuEntry("Label", links.LABEL, "l", 50),
    MenuEntry("At work", links.AT_WORK, "a", 70, has_work),
    MenuEntry("Begin", links.BEGIN, "b", 80),
    MenuEntry("Calibration", links.CALIBRATION, "k", 110, has_calibration),
    MenuEntry("Watch", links.WATCH, "f", 115, has_watched),
    MenuEntry("Compare", links.COMPARE, "m", 120, has_two_scored),
    MenuEntry("Check", links.CHECK, "e", 130, has_two_scored),
    MenuEntry("Share of good ones", links.SHARE, "n", 140, make_has_run(*SCORING_COMMANDS)),
    MenuEntry("Share", links.SHARED, "p", 145, make_has_run()),
    GuestDoor("label", links.LABEL, ("/api/queues/", "/api/labels"), require_queue),
    PagePanel("home.html", "web/alerts.html", list_open_alerts),
)
