"""What the core itself hangs into the browser."""

from pollex.reports.numbers import format_percent
from pollex.store.runs import Run
from pollex.text import format_count
from pollex.web import links
from pollex.web.hooks import (
    GuestDoor,
    MenuEntry,
    PagePanel,
    RunKind,
    RunOutcome,
    TemplateValues,
    count_runs,
    list_calibrators_of_rooms,
    make_run_check,
)
from pollex.web.likeness import estimate_good_share
from pollex.web.queues import get_queue
from pollex.web.site import SCORING_COMMANDS, Site
from pollex.web.watching import get_watcher


def has_two_scored_runs(site: Site) -> bool:
    """Return whether there are two runs to compare."""
    return count_runs(site, *SCORING_COMMANDS) > 1


def has_sets(site: Site) -> bool:
    """Return whether there is a rubric set."""
    return bool(site.sets())


def has_calibration(site: Site) -> bool:
    """Return whether probabilities can be looked at, of runs or of a calibrator."""
    return bool(list_calibrators_of_rooms(site)) or make_run_check(*SCORING_COMMANDS)(site)


def has_work(site: Site) -> bool:
    """Return whether something is at work, or stopped before its end."""
    is_busy = any(not child.over for child in site.children.by_id.values())
    return is_busy or bool(site.store.value(UNFINISHED_RUNS_QUERY))


def can_watch_folders(site: Site) -> bool:
    """Return whether folders are looked at, or could be: there is a set to score by."""
    return bool(get_watcher(site).folders) or has_sets(site)


def fill_open_alerts(site: Site, about: TemplateValues) -> TemplateValues | None:  # noqa: ARG001
    """Return what holds more often than before, until somebody has seen it."""
    alerts = get_watcher(site).open_alerts
    return {"alerts": alerts} if alerts else None


def describe_good_share(site: Site, run: Run) -> RunOutcome | None:
    """Say how many conversations of a run are good."""
    good = estimate_good_share(site, run)
    if good is None or good.value is None:
        return None
    return RunOutcome(f"{format_percent(good.value)} good")


def describe_learned_set(site: Site, run: Run) -> RunOutcome | None:
    """Say how many rubrics a run learned."""
    named = site.set_of(run)
    if named is None:
        return None
    return RunOutcome(format_count(len(named.rubric_set.rubrics), "rubric"))


def require_queue(site: Site, id_: str) -> None:
    """Raise NotFound where there is no such queue."""
    get_queue(site.store, id_)


UNFINISHED_RUNS_QUERY = "SELECT count(*) FROM runs WHERE status NOT IN ('done', 'partial')"


HOOKS = (
    MenuEntry("Home", links.HOME_PATH, "h", 10),
    MenuEntry("Logs", links.LOGS_PATH, "o", 15),
    MenuEntry("Runs", links.RUNS_PATH, "r", 20, make_run_check()),
    MenuEntry(
        "Conversations", links.CONVERSATIONS_PATH, "c", 30, make_run_check(*SCORING_COMMANDS)
    ),
    MenuEntry("Rubrics", links.SETS_PATH, "s", 40, has_sets),
    MenuEntry("Label", links.LABEL_PATH, "l", 50),
    MenuEntry("At work", links.AT_WORK_PATH, "a", 70, has_work),
    MenuEntry("Begin", links.BEGIN_PATH, "b", 80),
    MenuEntry("Calibration", links.CALIBRATION_PATH, "k", 110, has_calibration),
    MenuEntry("Watch", links.WATCH_PATH, "f", 115, can_watch_folders),
    MenuEntry("Compare", links.COMPARE_PATH, "m", 120, has_two_scored_runs),
    MenuEntry("Check", links.CHECK_PATH, "e", 130, has_two_scored_runs),
    MenuEntry("Share of good ones", links.SHARE_PATH, "n", 140, make_run_check(*SCORING_COMMANDS)),
    MenuEntry("Share", links.SHARING_PATH, "p", 145, make_run_check()),
    GuestDoor("label", links.LABEL_PATH, ("/api/queues/", "/api/labels"), require_queue),
    PagePanel("home.html", "web/alerts.html", fill_open_alerts),
    RunKind("learn", "Rubrics learned", describe_learned_set),
    RunKind("refit", "Rubrics weighed again", describe_learned_set),
    RunKind("score", "Scores", describe_good_share),
    RunKind("evaluate", "Evaluation", describe_good_share),
    RunKind("label", "Labels by rubrics", describe_good_share),
    RunKind("queue", "Queue for labels"),
)
