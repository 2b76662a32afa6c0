"""Rubric sets: their rubrics, the origin of each, and differences of two sets."""

import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from pollex.errors import BadCalibrator
from pollex.rubrics.headlines import (
    do_thumbs_contradict_rubric,
    list_headlines,
    sort_rubrics_by_order_of_choice,
)
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity, Quote, Reason
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.sets import OUTCOMES_HEADINGS, SIDE_HEADINGS, diff_sets
from pollex.web import drawings, links
from pollex.web.by_class import count_answers_by_class
from pollex.web.faults import NotFound
from pollex.web.hooks import list_panels
from pollex.web.listing import find_run_that_asked
from pollex.web.run_logs import name_log_of_run
from pollex.web.site import NamedSet, Site
from pollex.web.views import PageData, page, send_file

TITLES_BY_POLARITY: tuple[tuple[Polarity, str], ...] = (
    ("dsat", "What goes wrong"),
    ("sat", "What goes well"),
)


@dataclass(frozen=True)
class SupportedRubric:
    """A rubric with its evidence.

    Attributes:
        conversations: How many conversations its reasons are from.
        quotes: Quotes of the rubric and its reasons, each once.
    """

    rubric: ChosenRubric
    conversations: int
    quotes: tuple[Quote, ...]

    @property
    def turned(self) -> bool:
        """Whether conversations that it did not see speak against it."""
        return do_thumbs_contradict_rubric(self.rubric)

    @property
    def examples(self) -> tuple[str, ...]:
        """Ids of three conversations that it quotes."""
        return tuple(dict.fromkeys(quote.conversation_id for quote in self.quotes))[:3]


@page(links.SETS_PATH, "sets.html", here="Rubrics")
def show_sets(site: Site, as_json: bool) -> PageData:
    """List the rubric sets of the store and of files."""
    named_sets = list(site.sets().values())
    if as_json:
        rows = []
        for named_set in named_sets:
            rows.append(
                (named_set.id, named_set.name, named_set.run, len(named_set.rubric_set.rubrics))
            )

        return {
            "sets": [dict(zip(("id", "name", "run", "rubrics"), row, strict=True)) for row in rows]
        }

    logs = name_logs_of_sets(site)
    # what changed is told of sets of one log: those of another have other rubrics anyway
    before = {}
    for place, named_set in enumerate(named_sets):
        older = (other for other in named_sets[place + 1 :] if logs[other.id] == logs[named_set.id])
        before[named_set.id] = next(older, None)

    return {
        "sets": named_sets,
        "logs": logs,
        "before": before,
        "unreadable": site.unreadable,
    }


def name_logs_of_sets(site: Site) -> dict[str, str]:
    """Return the names of the logs that rubric sets were learned from, by the set's id; empty where unknown."""
    logs_by_run = {run.id: name_log_of_run(run) for run in site.runs()}
    return {named.id: logs_by_run.get(named.run, "") for named in site.sets().values()}


@page(f"{links.SETS_PATH}/{{set}}", "set.html", here="Rubrics")
def show_set(site: Site, named: NamedSet, as_json: bool) -> PageData:
    """Show a rubric set: what it says first, how well it does after."""
    if as_json:
        return {
            "id": named.id,
            "name": named.name,
            "set": named.rubric_set,
        }

    kinds = {}
    for kind, title in TITLES_BY_POLARITY:
        kinds[kind, title] = support_rubrics(named.rubric_set, kind)

    others = []
    for other in site.sets().values():
        if other.id != named.id:
            others.append(other)

    in_store = {run.id for run in site.runs()}
    run = find_run_that_asked(site, named)

    return {
        "answered": count_answers_by_class(site, named, run) if run else None,
        "draw": drawings.draw_by_class,
        "drafts": site.store.rows(DRAFTS_OF_SET_QUERY, [named.id]),
        "kinds": kinds,
        "others": others,
        "log": name_logs_of_sets(site).get(named.id, ""),
        "in_store": in_store,
    }


DRAFTS_OF_SET_QUERY = """
    SELECT id, max(version) AS version, max(time) AS time FROM drafts WHERE base = ? GROUP BY id ORDER BY time DESC
"""
"""The drafts that began with a set, the last one first."""


def support_rubrics(rubric_set: RubricSet, kind: Polarity) -> list[SupportedRubric]:
    """Return a set's rubrics of one kind, with evidence: headlines in their order, then all others."""
    reasons = {reason.id: reason for reason in rubric_set.reasons}
    # headlines, each with its near twins behind it
    groups = []
    for headline in list_headlines(rubric_set.rubrics, kind):
        groups.append((headline.rubric, *headline.also))

    leading = []
    for group in groups:
        for rubric in group:
            if rubric.polarity == kind:
                leading.append(rubric)

    # behind the headlines and their twins all others, in the order of the set
    rest = []
    for rubric in sort_rubrics_by_order_of_choice(rubric_set.rubrics):
        if rubric.polarity == kind and rubric not in leading:
            rest.append(rubric)

    supports: list[SupportedRubric] = []
    for rubric in (*leading, *rest):
        reasons_of_rubric = []
        for id_ in rubric.reason_ids:
            if id_ in reasons:
                reasons_of_rubric.append(reasons[id_])

        supports.append(
            _support_rubric(
                rubric,
                reasons_of_rubric,
            )
        )

    return supports


def _support_rubric(rubric: ChosenRubric, reasons: Sequence[Reason]) -> SupportedRubric:
    # each quote once, those of the rubric itself first
    reason_quotes: list[Quote] = []
    for reason in reasons:
        reason_quotes.extend(reason.quotes)
    quotes = dict.fromkeys((*rubric.best_quotes, *reason_quotes))
    return SupportedRubric(
        rubric,
        len({reason.conversation_id for reason in reasons}),
        tuple(quotes),
    )


@page(f"{links.SETS_PATH}/{{set}}/rubric", "rubric.html", here="Rubrics")
def show_rubric(
    site: Site,
    named: NamedSet,
    as_json: bool,
    id_: str,
) -> PageData:
    """Show where a rubric came from: reasons, quotes, turns, and what was merged into it."""
    rubric_set = named.rubric_set
    rubric = get_rubric(rubric_set, id_)
    data: PageData = {
        "rubric": rubric,
        "reasons": [reason for reason in rubric_set.reasons if reason.id in rubric.reason_ids],
        "merged": [dropped for dropped in rubric_set.dropped if dropped.duplicate_of == rubric.id],
    }
    panels = list_panels("rubric.html", site, named=named, rubric=rubric)
    if as_json:
        # programs get the figures of rooms, too
        for _, figures in panels:
            data |= figures
        return data

    in_store = named.run in {run.id for run in site.runs()}
    headings = OUTCOMES_HEADINGS if rubric.outcome else SIDE_HEADINGS
    return data | {
        "run": named.run if in_store else "",
        "panels": panels,
        "side": headings[rubric.polarity],
    }


def get_rubric(rubric_set: RubricSet, id_: str) -> ChosenRubric:
    """Return a rubric of a set by its id. Raises NotFound where there is none."""
    rubric = next((rubric for rubric in rubric_set.rubrics if rubric.id == id_), None)
    if rubric is None:
        raise NotFound(
            f"the set has no rubric {id_!r}",
            hint="its page has those there are",
        )

    return rubric


@page(f"{links.SETS_PATH}/{{set}}/file")
def send_set_file(named: NamedSet) -> Response:
    """Send a set with its arrays and the file for edits, packed together."""
    try:
        body = _pack_set(named.rubric_set)
    except BadCalibrator as error:
        raise NotFound(
            error.what,
            hint="the folder that it was learned into has it whole",
        ) from None

    return send_file("rubrics.zip", "application/zip", body)


def _pack_set(rubric_set: RubricSet) -> bytes:
    # saved as into a folder, so that the archive holds the same files
    with tempfile.TemporaryDirectory() as folder, io.BytesIO() as whole:
        rubric_set.save(Path(folder) / "rubrics.json")
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)
        return whole.getvalue()


@page(links.SET_DIFF_PATH, "set_diff.html", here="Rubrics")
def show_set_diff(as_json: bool, a: NamedSet, b: NamedSet) -> PageData:
    """Show what two sets differ in: words, order, figures."""
    difference = diff_sets(a.rubric_set, b.rubric_set)
    if as_json:
        return difference.as_json()
    return {"changes": difference.changes}
