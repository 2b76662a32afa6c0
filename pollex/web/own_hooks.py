"""What the core itself hangs into the browser."""

from pollex.web import links
from pollex.web.hooks import (
    GuestDoor,
    MenuEntry,
    count_runs,
    ran,
)
from pollex.web.site import SCORING, Site


def two_scored(site: Site) -> bool:
    """Return whether there are two runs to compare."""
    return count_runs(site, *SCORING) > 1


def has_sets(site: Site) -> bool:
    """Return whether there is a rubric set."""
    return bool(site.sets())


def has_calibration(site: Site) -> bool:
    """Return whether probabilities can be looked at, of runs or of a calibrator."""
    return bool(site.calibrators) or ran(*SCORING)(site)


def has_studies(site: Site) -> bool:
    """Return whether people can talk to a system."""
    return bool(site.store.value("SELECT count(*) FROM studies"))


def has_work(site: Site) -> bool:
    """Return whether something is at work, or stopped before its end."""
    is_busy = any(not child.over for child in site.children.by_id.values())
    return is_busy or bool(site.store.value(UNFINISHED))


UNFINISHED = "SELECT count(*) FROM runs WHERE status NOT IN ('done', 'partial')"


HOOKS = (
    MenuEntry("Home", links.HOME, "h", 10),
    MenuEntry("Logs", links.LOGS, "o", 15),
    MenuEntry("Runs", links.RUNS, "r", 20, ran()),
    MenuEntry("Conversations", links.CONVERSATIONS, "c", 30, ran(*SCORING)),
    MenuEntry("Rubrics", links.SETS, "s", 40, has_sets),
    MenuEntry("Label", links.LABEL, "l", 50),
    MenuEntry("At work", links.AT_WORK, "a", 70, has_work),
    MenuEntry("Begin", links.BEGIN, "b", 80),
    MenuEntry("Calibration", links.CALIBRATION, "k", 110, has_calibration),
    MenuEntry("Compare", links.COMPARE, "m", 120, two_scored),
    MenuEntry("Check", links.CHECK, "e", 130, two_scored),
    MenuEntry("Share", links.SHARE, "p", 140, ran(*SCORING)),
    MenuEntry("Talk", links.TALK, "t", 150, has_studies),
    GuestDoor(links.LABEL, ("/api/queues/", "/api/labels")),
    GuestDoor(links.TALK, ("/api/talks/",)),
)
