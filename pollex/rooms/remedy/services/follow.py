"""Remedies that were found: shown again, and followed after they were deployed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.intervals import CONFIDENCE_LEVEL
from pollex.rooms.remedy.services.result import REMEDY_COMMAND, RemedyResult
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.workspace import run_coroutine_to_end
from pollex.services.compare import compare
from pollex.services.logs import Sources
from pollex.services.results import TabularResult
from pollex.store.resume import find_run, list_stored_runs, read_step_result
from pollex.store.store import Store
from pollex.text import JsonDict, TerminalLines

FOLLOWED_RECORD_NAME, LOOKS_RECORD_NAME, FEWEST_REMEDIES_FOR_SLOPE = (
    "followed",
    "followed: looks",
    3,
)
"""Names of what is kept, and remedies from which on a regression tells how far predictions can be believed."""


def show_remedy(name: str, *, run: RunOptions) -> RemedyResult:
    """Show what a run came to.

    Raises:
        WrongUse: It is no run of `remedy`, or it didn't come to its end.
    """
    with Store.open(run.store, read_only=True) as store:
        remedy_run = find_run(store, name, REMEDY_COMMAND)
        if (record := read_step_result(store, remedy_run.id, REMEDY_COMMAND)) is None:
            raise WrongUse(
                f"{remedy_run.id} has no remedy",
                hint="name a run of `pollex remedy run` that ended",
            )

        return RemedyResult(record=record, run=remedy_run.id)


def read_promised_effect(traffic: Mapping[str, float] | float | None) -> float | None:
    """Return the effect per conversation that a proof promised; runs of before have it without an interval."""
    if isinstance(traffic, Mapping):
        return traffic["value"]
    return traffic


@dataclass(frozen=True, kw_only=True, repr=False)
class FollowResult(TabularResult):
    """What a remedy promised, and what came of it.

    Attributes:
        first, second: The field's values for the old and the new prompt.
        rows: Of the target's mean, of the probability of a thumb up, and of labels at random:
            predicted and realised.
        plan: What a live comparison of both prompts takes.
        believed: Slope of realised on predicted over all followed remedies, with its interval; None
            under three.
    """

    json_fields = ("run", "target", "first", "second", "believed", "plan", "figures=rows")
    run: str
    target: str
    first: str
    second: str
    rows: tuple[JsonDict, ...]
    believed: dict[str, float] | None
    plan: str

    @property
    def headline(self) -> str:
        """Return the target's difference, predicted and realised."""
        # the first row is the target
        target_row = self.rows[0]
        if target_row["predicted"] is None:
            predicted = "nothing"
        else:
            predicted = f"{target_row['predicted']:+.3f}"

        interval = f"[{target_row['low']:+.3f}, {target_row['high']:+.3f}]"
        realised = f"{target_row['realised']:+.3f} {interval}"
        headline = f"{target_row['what']}: {predicted} predicted, {realised}"
        # rows after P(thumb up) are thumbs of users
        better = []
        for row in self.rows[2:]:
            if row["low"] is not None and row["low"] > 0:
                better.append(row["what"])

        headline = f"{self.second} − {self.first}: {headline}"
        return headline + (" · better (L: thumbs of users)" if better else "")

    def records(self) -> list[JsonDict]:
        """Return a row a figure."""
        return list(self.rows)

    def told(self) -> TerminalLines:
        """Yield each figure as it was predicted and as it came, and how far remedies can be believed."""
        yield self.headline
        for row in self.rows[1:]:
            if row["predicted"] is None:
                predicted = "–"
            else:
                predicted = f"{row['predicted']:+.3f}"

            yield f"  {row['what']}: {predicted} predicted, {row['realised']:+.3f} came"

        if (slope := self.believed) is not None:
            yield f"Came {slope['slope']:.2f} [{slope['low']:.2f}, {slope['high']:.2f}] of what remedies had predicted"

        yield f"Live, conversations to either prompt by chance: {self.plan}"
        yield "Mark each with its prompt; `pollex check NEW --against OLD --again` may look at any time."


def follow_remedy(
    name: str,
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    by: str,
    baseline: str,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> FollowResult:
    """Compare what a remedy promised with what conversations under both prompts show, and keep both.

    Args:
        baseline: The value of `by` for the old prompt: a guess could turn the difference round.

    Raises:
        WrongUse: The run has no remedy, nothing was proven, or the log has one prompt alone, or
            several new ones.
    """
    # the run's best change is followed
    remedy = show_remedy(name, run=run)
    if not remedy.edits:
        raise WrongUse(
            f"{remedy.run} proved nothing: {remedy.verdict}",
            hint="name one that proved a change",
        )

    edit = remedy.edits[0]
    target = remedy.record["target"]
    about: JsonDict = {
        "reading": reading,
        "run": run,
        "model": model,
        "progress": progress,
    }
    # the effect on thumbs that the plan should be able to see
    if thumbs := edit.thumbs["value"]:
        about["see"] = abs(thumbs)

    compared = compare(
        [logs] if isinstance(logs, str | Path) else logs,
        rubrics,
        by=by,
        baseline=baseline,
        **about,
    )
    # one prompt against the old one, so that a difference has one cause
    first_comparison, *others = compared.comparisons
    if others:
        values = ", ".join(comparison.second for comparison in compared.comparisons)
        what = f"{by} has several values beside {baseline!r}: {values}"
        raise WrongUse(
            what,
            hint="give the conversations under the old prompt and one new one",
            option="by",
        )

    # more of a bad rubric is worse
    side = 1 if target["polarity"] == "sat" else -1
    difference = next(
        (rubric.difference for rubric in first_comparison.rubrics if rubric.id == target["id"]),
        None,
    )
    if difference is None or difference.value is None:
        raise WrongUse(
            f"the set has no rubric {target['id']}",
            hint="give the set of that run",
            option="rubrics",
        )

    # ends change places with the side; proofs have answers from 0 to 1, hence the tenth
    ends = sorted(side * end / 10 for end in (difference.low or 0.0, difference.high or 0.0))
    chance = first_comparison.probability
    share = first_comparison.share
    # predicted and realised, with its interval, for the target, the probability, and thumbs
    figures = [
        (target["text"], read_promised_effect(edit.traffic), side * difference.value / 10, *ends),
        ("P(thumb up)", edit.thumbs["value"], chance.value or 0.0, chance.low, chance.high),
        *(
            []
            if share is None
            else [("share of thumbs up", None, share.value, share.low, share.high)]
        ),
    ]
    # every look is counted, and makes the next interval wider
    with Store.open(run.store) as store:
        look = 1 + int(
            (read_step_result(store, remedy.run, LOOKS_RECORD_NAME) or {}).get("looks", 0)
        )
        run_coroutine_to_end(store.write_step(remedy.run, LOOKS_RECORD_NAME, {"looks": look}))
        names = ("what", "predicted", "realised", "low", "high")
        rows = []
        for figure in figures:
            rows.append(widen_interval_for_look(dict(zip(names, figure, strict=True)), look))
        run_coroutine_to_end(store.write_step(remedy.run, FOLLOWED_RECORD_NAME, rows[0]))
        # what remedies of this store promised, and what came of them
        follow_ups = [
            read_step_result(store, run.id, FOLLOWED_RECORD_NAME)
            for run in list_stored_runs(store)
            if run.command == REMEDY_COMMAND
        ]

    pairs = []
    for row in follow_ups:
        if row and row["predicted"] is not None:
            pairs.append((row["predicted"], row["realised"]))

    about = {
        "run": remedy.run,
        "target": target["text"],
        "plan": first_comparison.plan.headline,
    }
    about |= {"first": first_comparison.first, "second": first_comparison.second}
    return FollowResult(
        **about,
        rows=tuple(rows),
        believed=fit_slope_of_promises(pairs),
    )


def widen_interval_for_look(row: JsonDict, look: int) -> JsonDict:
    """Return a figure with an interval that holds at every look: the j-th spends 1/j(j + 1) of all."""
    if row["low"] is None or row["high"] is None:
        return row

    from scipy.stats import norm  # half a second

    level = (1 - CONFIDENCE_LEVEL) / (look * (look + 1))
    wider = float(norm.isf(level / 2) / norm.isf((1 - CONFIDENCE_LEVEL) / 2))
    low, high = (row["realised"] + wider * (row[end] - row["realised"]) for end in ("low", "high"))
    return row | {"low": low, "high": high}


def fit_slope_of_promises(pairs: list[tuple[float, float]]) -> dict[str, float] | None:
    """Return the slope of realised on predicted differences with its 95 % interval; None under three remedies."""
    from scipy.stats import linregress, t  # half a second

    # a slope needs three points, and two different predictions
    if len(pairs) < FEWEST_REMEDIES_FOR_SLOPE or len({x for x, _ in pairs}) < 2:
        return None

    fitted = linregress(*np.array(pairs).T)
    half = float(t.ppf(0.975, len(pairs) - 2) * fitted.stderr)
    slope = float(fitted.slope)

    return {
        "slope": slope,
        "low": slope - half,
        "high": slope + half,
        "n": float(len(pairs)),
    }
