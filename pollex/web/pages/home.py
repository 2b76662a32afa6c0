"""The first page: what the thumbs are about, active runs, and open labels."""

from collections import Counter
from dataclasses import dataclass

from pollex.measures.intervals import Figure
from pollex.rubrics.headlines import (
    describe_lack_of_proven_rubrics,
    describe_same_facts,
    describe_side_without_headline,
    explain_why_proven_rubric_is_no_headline,
    is_proven_or_likely,
    list_deeds_in_conversations_of_ending,
    list_headlines,
    list_proven_deeds_outside_headlines,
    list_proven_phrase_rubrics,
    list_rubrics_explained_by_circumstances,
    list_rubrics_of_conversation_endings,
    list_rubrics_of_separate_facts,
    list_strongest_unproven_deeds,
    list_topics_unlike_the_rest,
    list_unexpected_rubrics,
)
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import describe_reading
from pollex.store.runs import Run
from pollex.store.tables import QueueRow
from pollex.web import links
from pollex.web.hooks import describe_outcome, find_waiting_work, list_links_of, list_panels
from pollex.web.likeness import estimate_good_share
from pollex.web.listing import load_run_columns
from pollex.web.pages.compare import find_built_in_run
from pollex.web.pages.run_states import describe_status
from pollex.web.pages.runs import STOPPED_STATUSES, measure_progress
from pollex.web.pages.sets import SupportedRubric, name_logs_of_sets, support_rubrics
from pollex.web.queues import QueueProgress, count_progress
from pollex.web.run_logs import (
    identify_logs_of_run,
    list_runs_of_own_log,
    list_runs_of_set,
    name_log_of_run,
)
from pollex.web.site import NamedSet, Site
from pollex.web.views import PageData, page

MAX_RUNS_SHOWN = 5
TITLES_BY_POLARITY: tuple[tuple[Polarity, str], ...] = (
    ("dsat", "What goes wrong"),
    ("sat", "What goes well"),
)


@page(links.HOME_PATH, "home.html", here="Home")
def show_home(site: Site, report: str = "") -> PageData:
    """Show what was learned, what goes on, and the last runs.

    Args:
        report: Id of the rubric set whose report is shown; empty for the last one.

    Raises:
        NotFound: There is no such set.
    """
    every = [(run, site.status(run)) for run in site.runs()]
    run_ids = {run.id for run, _ in every}
    named = site.set(report) if report else site.set_at_home()
    rubric_set = named.rubric_set if named else None
    waiting = {}
    for run, _ in every:
        if work := find_waiting_work(site, run):
            waiting[run.id] = work

    last_runs = []
    for run, status in every[:MAX_RUNS_SHOWN]:
        waits = run.id in waiting and status in STOPPED_STATUSES
        last_runs.append((run, "waiting" if waits else describe_status(site, run, status)))
    return {
        "runs": last_runs,
        "came_to": {run.id: describe_outcome(site, run) for run, _ in every[:MAX_RUNS_SHOWN]},
        "total": len(every),
        "live": [
            (run, status, measure_progress(site, run))
            for run, status in every
            if status in ("running", "stalled")
        ],
        "with_scores": next(iter(list_runs_of_own_log(site, named)), None) if named else None,
        "scored": list_good_shares(site, named) if named else [],
        "reports": name_reports(site),
        # commands of this page, such as the replay of the example
        "started": [
            child
            for child in site.children.by_id.values()
            if child.back == links.HOME_PATH and child.state != "done"
        ],
        "waiting": list(waiting.values()),
        "left": find_queue_left(site),
        "folder": site.store.folder,
        "named": named,
        "in_store": named is not None and named.run in run_ids,
        # for a model's set the run of a built-in one, if the store has its run
        "beside": find_built_in_run(site, named)
        if named is not None and named.run in run_ids
        else None,
        "panels": list_panels("home.html", site, named=named),
        "ways_on": list_ways_on(named),
    } | list_findings(rubric_set)


def list_good_shares(site: Site, named: NamedSet) -> list[tuple[Run, Figure, str]]:
    """Return the share of good conversations by log: of the last run on each, the set's own log first."""
    # runs come latest first, so that the first one of a log is its last
    shares: dict[frozenset[str], tuple[Run, Figure, str]] = {}
    for run in (*list_runs_of_own_log(site, named), *list_runs_of_set(site, named)):
        logs = identify_logs_of_run(run)
        if logs not in shares and (good := estimate_good_share(site, run)):
            shares[logs] = (run, good, name_log_of_run(run))

    # a log in memory may be any of the others: its share stands only where there is no other
    known = [share for logs, share in shares.items() if logs]
    return (known or list(shares.values()))[:MAX_RUNS_SHOWN]


def name_reports(site: Site) -> dict[str, str]:
    """Name each rubric set by its log, as in `name_logs_of_sets`; of several from one log, by who judged, too."""
    logs = name_logs_of_sets(site)
    sets_by_log = Counter(logs.values())

    names = {}
    for named in site.sets().values():
        name = logs[named.id]
        if name and sets_by_log[name] > 1:
            name = f"{name}, judged by {named.rubric_set.judge.name}"
        names[named.id] = name

    return names


def list_ways_on(named: NamedSet | None) -> dict[str, list[tuple[str, str]]]:
    """Return where rooms lead from each rubric of the set: words and address, by the rubric's id."""
    ways = {}
    if named is not None:
        for rubric in named.rubric_set.rubrics:
            ways[rubric.id] = list_links_of("home.html", {"named": named, "rubric": rubric})

    return ways


def list_findings(rubric_set: RubricSet | None) -> PageData:
    """Return what was learned, by the sections of the page; empty ones where nothing was."""
    rubrics = rubric_set.rubrics if rubric_set else ()
    sides = {}
    strongest = {}
    lacking = {}
    nothing = ""
    if rubric_set is not None:
        for kind, title in TITLES_BY_POLARITY:
            sides[title] = list_leading_headlines(rubric_set, kind)
            strongest[title] = list_strongest_unproven_deeds(rubrics, kind)
            lacking[title] = describe_side_without_headline(rubrics, kind)
        if not any(sides.values()):
            nothing = describe_lack_of_proven_rubrics(rubrics, rubric_set.data)

    beside_findings = []
    for rubric in list_proven_deeds_outside_headlines(rubrics):
        beside_findings.append((rubric, explain_why_proven_rubric_is_no_headline(rubric)))
    lists = {
        "outcomes": list_rubrics_of_conversation_endings(rubrics),
        "said": list_proven_phrase_rubrics(rubrics),
        "along": list_rubrics_explained_by_circumstances(rubrics),
        "to_check": list_unexpected_rubrics(rubrics),
    }
    listed = [rubric for rubric, _ in beside_findings]
    for several in (*lists.values(), *strongest.values()):
        listed += several
    for headlines in sides.values():
        for supported, also in headlines:
            listed += [supported.rubric, *also]

    listed_ids = {rubric.id for rubric in listed}
    rest = [
        rubric for rubric in list_rubrics_of_separate_facts(rubrics) if rubric.id not in listed_ids
    ]
    return lists | {
        "sides": sides,
        "strongest": strongest,
        "lacking": lacking,
        "nothing": nothing,
        "reading": describe_reading(rubrics),
        "habits": list_deeds_in_conversations_of_ending(rubrics),
        "beside_findings": beside_findings,
        "rest_borne_out": list(filter(is_proven_or_likely, rest)),
        "same_facts": describe_same_facts(rubrics),
        "rest": rest,
        "topics": list_topics_unlike_the_rest(rubric_set.segments)[:MAX_RUNS_SHOWN]
        if rubric_set
        else [],
    }


LABELED_QUEUES_QUERY = """
    SELECT q.* FROM queues AS q JOIN leases AS l ON l.queue = q.id
    GROUP BY q.id ORDER BY max(l.rowid) DESC LIMIT ?
"""
"""The queues that somebody labeled last."""


@dataclass(frozen=True)
class QueueLeft:
    """A queue that somebody began to label, how far it is, and the name of its log."""

    queue: QueueRow
    progress: QueueProgress
    log: str


def find_queue_left(site: Site) -> QueueLeft | None:
    """Return the queue that somebody labeled last, of those that aren't done; None where all are."""
    for row in site.store.rows(LABELED_QUEUES_QUERY, [MAX_RUNS_SHOWN]):
        queue = QueueRow(**row)
        run = site.run(queue.run)
        progress = count_progress(site.store, queue, load_run_columns(site, run))
        if not progress.is_over:
            return QueueLeft(queue, progress, name_log_of_run(run))

    return None


def list_leading_headlines(
    rubric_set: RubricSet, kind: Polarity
) -> list[tuple[SupportedRubric, tuple[ChosenRubric, ...]]]:
    """Return the first five headlines of a kind, in their order, each with its near twins."""
    every = {rubric.rubric.id: rubric for rubric in support_rubrics(rubric_set, kind)}
    pairs: list[tuple[SupportedRubric, tuple[ChosenRubric, ...]]] = []
    for headline in list_headlines(rubric_set.rubrics, kind)[:MAX_RUNS_SHOWN]:
        pairs.append((every[headline.rubric.id], headline.also))

    return pairs
