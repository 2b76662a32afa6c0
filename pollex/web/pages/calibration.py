"""How far the probabilities of a run can be trusted, and what a calibrator was fitted to."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import compute_share_with_interval
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.calibrated import (
    MIN_LABELS,
    WORDS_BY_LABEL_SOURCE,
    LabelSource,
    draw_reliability_of_run,
    find_sure_predictions,
    make_bands,
    make_score_bands,
    mask_usable_rows,
    measure_drift,
    measure_share_outside,
    measure_subgroups_of_run,
    select_label_source,
)
from pollex.web.hooks import list_calibrators_of_rooms
from pollex.web.lens import RunColumns
from pollex.web.likeness import measure_drift_of_set
from pollex.web.listing import find_scoring_run, load_measured_columns, load_run_columns
from pollex.web.site import SCORING_COMMANDS, NamedSet, Site
from pollex.web.views import PageData, page

if TYPE_CHECKING:
    from pollex.measures.drift import StabilityIndex

MAX_RUNS_COMPARED = 5


@page(links.CALIBRATION_PATH, "calibration.html", here="Calibration")
def show_calibration(
    site: Site,
    run: str = "",
    source: LabelSource = "log",
    by: str = "",
    time: str = "",
) -> PageData:
    """Show bands, tails, subgroups, and drift beside other runs."""
    calibrators = [*list_calibrators_of_rooms(site)]
    # nothing was scored: only calibrators that were named at the start can be shown
    if calibrators and not run and not any(run.command in SCORING_COMMANDS for run in site.runs()):
        return {"run": None, "calibrators": calibrators}

    chosen = find_scoring_run(site, run)
    # measured with the scores of the folds, where there are any
    lens = select_label_source(load_measured_columns(site, chosen), site.store, source)
    every = [run for run in site.runs() if run.command in SCORING_COMMANDS]
    # other runs are compared by thumbs of the log alone
    if source != "log":
        others = []
    else:
        others = [
            (other_run.id, load_run_columns(site, other_run))
            for other_run in every
            if other_run.id != chosen.id and other_run.finished
        ][:MAX_RUNS_COMPARED]

    labels = int(mask_usable_rows(lens).sum())
    enough = labels >= MIN_LABELS
    named = site.set_of(chosen)
    fields = list_fields(site, chosen, lens)
    times = find_time_fields(fields)

    return {
        "run": chosen,
        "runs": every,
        "source": source,
        "sources": WORDS_BY_LABEL_SOURCE,
        "named": named,
        "calibrators": calibrators,
        "labels": labels,
        "by_folds": bool(lens.measured),
        "fewest": MIN_LABELS,
        "enough": enough,
        "bands": make_bands(lens) if enough else [],
        "score_bands": make_score_bands(lens) if enough else [],
        "diagram": draw_reliability_of_run(lens) if enough else None,
        "tails": find_sure_predictions(lens) if enough else [],
        "subgroups": measure_subgroups_of_run(lens, fields.get(by)) if enough else [],
        "fields": [*fields],
        "times": [*times],
        "weeks": make_weeks(
            lens, times[time], named.rubric_set if named else None, read_learned_netsat(site, named)
        )
        if time in times
        else [],
        "drift": site.kept(
            ("drift", lens.version, *(other[1].version for other in others)),
            lambda: measure_drift(lens, others),
        ),
    }


@page(f"{links.CALIBRATION_PATH}/{{calibrator}}", "set_calibrator.html", here="Calibration")
def show_calibrator(site: Site, calibrator_id: str) -> PageData:
    """Show the calibrator of a rubric set, or one that a room has."""
    shown = list_calibrators_of_rooms(site).get(calibrator_id)
    if shown is not None:
        return shown.page(site, calibrator_id)

    labels = site.store.value("SELECT count(DISTINCT text_hash) FROM labels WHERE annotator <> ''")
    return {"named": _find_set(site, calibrator_id), "labels": labels}


def _find_set(site: Site, name: str) -> NamedSet:
    """Return a rubric set by its id, or by the run that made or used it."""
    # the name may be a run's, also without what stands behind its last hyphen
    if name not in site.sets() and any(
        name in (run.id, run.id.rpartition("-")[0]) for run in site.runs()
    ):
        return site.set_of(site.run(name)) or site.set(name)
    return site.set(name)


METADATA_QUERY = "SELECT id, arg_max(metadata, seq) AS metadata FROM conversations GROUP BY id"
MAX_FIELDS = 30
MAX_WEEKS = 60
LARGEST_TIME_IN_SECONDS = 1e11
"""Numbers over this are times in milliseconds, those under it in seconds."""

ValuesByConversation = Mapping[str, str]
"""By conversation."""


@dataclass(frozen=True)
class WeekOfConversations:
    """Conversations of one week, beside those that the rubrics were learned from.

    Attributes:
        begins: Its Monday.
        n: Conversations with a probability, whose mean is `mean`.
        seen: Share of thumbs up among labels that nothing was learned from.
        drift: How unlike NetSAT is spread; None for too few, and where the set doesn't say how it
            was spread.
        outside: Share whose NetSAT lies outside the range of those conversations; None where the
            store lacks them.
    """

    begins: date
    n: int
    mean: float
    seen: Figure
    drift: StabilityIndex | None
    outside: Figure | None


def list_fields(site: Site, run: Run, lens: RunColumns) -> dict[str, ValuesByConversation]:
    """Return the fields of a run's conversations that have one value each, by name."""

    def read() -> dict[str, ValuesByConversation]:
        # values by field and conversation
        by_run: dict[str, dict[str, str]] = defaultdict(dict)
        for row in site.store.ask(run.id, METADATA_QUERY):
            for name, value in _iterate_flat_fields(json.loads(row["metadata"] or "{}")):
                by_run[name][row["id"]] = value

        # fields that most conversations have
        most = Counter({name: len(values) for name, values in by_run.items()}).most_common(
            MAX_FIELDS
        )
        return {name: by_run[name] for name, _ in most}

    return site.kept(("fields", lens.version), read)


def _iterate_flat_fields(
    fields: Mapping[str, object], before: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield names and values; fields within a field have both names, joined by a dot."""
    for name, value in fields.items():
        if isinstance(value, dict) and not before:
            yield from _iterate_flat_fields(value, f"{name}.")
        elif isinstance(value, str | int | float):
            yield f"{before}{name}", str(value)


def find_time_fields(fields: Mapping[str, ValuesByConversation]) -> dict[str, ValuesByConversation]:
    """Return the fields that hold times."""
    # the first fifty values are enough to tell
    return {
        name: values
        for name, values in fields.items()
        if all(map(parse_moment, [*values.values()][:50]))
    }


def parse_moment(value: str) -> datetime | None:
    """Read a time: ISO 8601, or seconds or milliseconds since 1970; None where it is neither."""
    try:
        number = float(value)
    except ValueError:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None

        # a time without a zone counts as UTC
        if moment.tzinfo:
            return moment
        return moment.replace(tzinfo=UTC)

    seconds = number / 1000 if number > LARGEST_TIME_IN_SECONDS else number
    # between 1973 and 2286: other numbers are no times
    if 1e8 < seconds < 1e10:
        return datetime.fromtimestamp(seconds, UTC)
    return None


def read_learned_netsat(site: Site, named: NamedSet | None) -> Floats | None:
    """Return NetSAT of the conversations that a set was learned from `[n]`; None where the store doesn't have them."""
    run = next(
        (run for run in site.runs() if named is not None and run.id == named.rubric_set.run),
        None,
    )
    if run is None or run.command not in SCORING_COMMANDS:
        return None

    lens = load_run_columns(site, run)
    # scores of the conversations that the set was learned from
    netsats = lens.netsat[np.fromiter((side == "train" for side in lens.sides), bool, len(lens))]
    netsats = netsats[~np.isnan(netsats)]
    return netsats if len(netsats) else None


def make_weeks(
    lens: RunColumns,
    values: ValuesByConversation,
    rubric_set: RubricSet | None,
    learned: Floats | None,
) -> list[WeekOfConversations]:
    """Return the last weeks that a field's times lie in, the first one first.

    Args:
        learned: NetSAT of the conversations that the set was learned from `[n]`.
    """
    # rows of each week, by its Monday
    rows: dict[date, list[int]] = defaultdict(list)
    for id_, value in values.items():
        if (moment := parse_moment(value)) is not None and id_ in lens.place:
            day = moment.astimezone(UTC).date()
            rows[day - timedelta(days=day.weekday())].append(lens.place[id_])

    usable = mask_usable_rows(lens)
    last = sorted(rows)[-MAX_WEEKS:]
    return [
        _make_week(lens, begins, np.array(rows[begins]), usable[rows[begins]], rubric_set, learned)
        for begins in last
    ]


def _make_week(
    lens: RunColumns,
    begins: date,
    rows: Ints,
    labeled: Bools,
    rubric_set: RubricSet | None,
    learned: Floats | None,
) -> WeekOfConversations:
    p = lens.probability[rows]
    netsat = lens.netsat[rows]
    labels = lens.label[rows][labeled]
    probabilities = p[~np.isnan(p)]

    return WeekOfConversations(
        begins,
        len(probabilities),
        float(probabilities.mean()) if len(probabilities) else float("nan"),
        compute_share_with_interval(int((labels == 1).sum()), len(labels)),
        None if rubric_set is None else measure_drift_of_set(netsat[~np.isnan(netsat)], rubric_set),
        None if learned is None else measure_share_outside(learned, netsat),
    )
