"""Check new conversations against a baseline: differences and drift that fail a gate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.gates import iterate_github_workflow_commands, make_junit_report_of_gate
from pollex.formats.label_files import read_label_file
from pollex.formats.write import require_distinct_outputs, require_writable_output_path
from pollex.graphs.context import Progress
from pollex.measures.arrays import Floats
from pollex.measures.every_look import ConfidenceSequence, bound_mean_difference_at_every_look
from pollex.measures.intervals import Figure
from pollex.outputs import write_file, write_text
from pollex.reports.share import render_compare_page
from pollex.rooms import list_hooks
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.compare import (
    SampleComparison,
    ScoredArm,
    compare_two,
    keep_comparable,
    read_run_arm,
    score_arms,
)
from pollex.services.hooks import MendedRubrics
from pollex.services.logs import list_file_names
from pollex.services.results import Result, format_interval
from pollex.services.score import read_unedited
from pollex.store.store import Store
from pollex.text import (
    DATA_STYLE,
    TerminalLine,
    TerminalLines,
    TerminalTable,
    format_count,
    quote_unclear_name,
    render_notes,
)

ConditionStatus = Literal["passed", "undecided", "failed"]

DIFFERENCE_CONDITION_PATTERN = re.compile(
    r"(?:mean\((?P<of>[^()]+)\)|(?P<share>share)) (?P<way>drops|rises) by (?P<limit>\d*\.?\d+)"
)
DRIFT_CONDITION_PATTERN = re.compile(
    r"drift\((?P<of>[^()]+)\) (?:above|over|>) (?P<limit>\d*\.?\d+)"
)
UNLIKE_CONDITION_PATTERN = re.compile(r"(?P<of>unlike) (?:above|over|>) (?P<limit>\d*\.?\d+)")
CONDITION_FORMS_HINT = (
    "'mean(p) drops by 0.03', 'share drops by 0.05', 'mean(RUBRIC) rises by 1', "
    "'drift(p) above 0.25', 'unlike above 0.2'"
)
HOLDS_PREFIX = "holds "
"""Before the id of a rubric: whether it holds, in place of its mean."""
LARGEST_ANSWER_VALUE = 10.0
"""Largest answer to a rubric."""


@dataclass(frozen=True)
class Condition:
    """A condition that fails the gate.

    Attributes:
        text: As it was given.
        kind: What is looked at: a difference of means or shares, the stability index, or the share
            unlike.
        of: `p`, `netsat`, `share`, `unlike`, or a rubric's id.
        sign: 1 where a rise fails, −1 where a drop does.
    """

    text: str
    kind: Literal["difference", "drift", "unlike"]
    of: str
    limit: float
    sign: int = 1

    @classmethod
    def parse(cls, text: str, rubric_set: RubricSet) -> Condition:
        """Read a condition.

        Raises:
            WrongUse: It has none of the known forms, or names no rubric of the set.
        """
        plain = " ".join(text.split())
        # only a difference has a direction; drift and unlikeness fail where they are too large
        if match := DIFFERENCE_CONDITION_PATTERN.fullmatch(plain):
            sign = -1 if match["way"] == "drops" else 1
            condition = cls(
                plain,
                "difference",
                match["share"] or match["of"].strip(),
                float(match["limit"]),
                sign,
            )
        elif match := DRIFT_CONDITION_PATTERN.fullmatch(plain):
            condition = cls(
                plain,
                "drift",
                match["of"].strip(),
                float(match["limit"]),
            )
        elif match := UNLIKE_CONDITION_PATTERN.fullmatch(plain):
            condition = cls(plain, "unlike", "unlike", float(match["limit"]))
        else:
            raise WrongUse(
                f"{plain!r} is no condition",
                hint=f"forms are {CONDITION_FORMS_HINT}",
                option="fail_if",
            )

        # `of` has to name something that is measured of this set
        names = {"p", "netsat", "share"} | {rubric.id for rubric in rubric_set.rubrics}
        if condition.kind != "unlike" and condition.of not in names:
            what = f"{condition.of!r} is neither p nor netsat nor the id of a rubric of this set"
            raise WrongUse(
                what,
                hint=f"ids are {', '.join(sorted(names - {'share'}))}",
                option="fail_if",
            )

        _require_possible_limit(condition, rubric_set)
        return condition


def _require_possible_limit(condition: Condition, rubric_set: RubricSet) -> None:
    """Refuse a limit of 0, and one that no sample can exceed.

    Raises:
        WrongUse: It is such a limit.
    """
    # how far values are drifted has no largest value
    if condition.kind == "drift":
        return

    if condition.kind == "unlike" or condition.of == "share":
        largest = 1.0
    else:
        low, high = find_value_range(condition.of, rubric_set)
        largest = high - low

    hint = f"give a limit between 0 and {largest:g}"
    if condition.kind == "difference" and not condition.limit:
        raise WrongUse(f"{condition.text!r} has no limit", hint=hint, option="fail_if")
    if condition.limit >= largest:
        raise WrongUse(f"{condition.text!r} can't happen", hint=hint, option="fail_if")


@dataclass(frozen=True, kw_only=True)
class ConditionResult:
    """What became of a condition.

    Attributes:
        status: `failed`: the limit is reached, by more than chance; `passed`: the interval rules it
            out; `undecided`:
            the data allow neither.
        message: The figures in a sentence.
    """

    condition: str
    status: ConditionStatus
    figure: Figure
    message: str


STATUS_STYLES = {
    "failed": "red",
    "undecided": "yellow",
    "passed": "green",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckResult(Result):
    """The verdicts, with the comparison behind them.

    Attributes:
        again: Whether intervals hold however often the check is run.
        strict: Whether an undecided condition fails the gate, too.
        unscored: Conversations without a score, which are left out.
        mended: Rubrics that are mended by their state, and were looked at.
    """

    json_fields = (
        "failed",
        "again",
        "strict",
        "unscored",
        "mended",
        "verdicts",
        "comparison",
        "written",
    )

    verdicts: tuple[ConditionResult, ...]
    comparison: SampleComparison
    again: bool
    strict: bool
    unscored: int
    written: tuple[Path, ...] = field(default=())
    mended: int = 0

    @property
    def failed(self) -> bool:
        """Whether the gate is shut."""
        # undecided conditions shut the gate only if the user wants it strict
        shut = {"failed", "undecided"} if self.strict else {"failed"}
        return any(verdict.status in shut for verdict in self.verdicts)

    def __repr__(self) -> str:
        """Return the verdicts in a line."""
        return f"<Check: {'; '.join(f'{verdict.condition}: {verdict.status}' for verdict in self.verdicts)}>"

    def told(self, github: bool = False) -> TerminalLines:
        """Yield a row a condition, what drifted, and for a workflow of GitHub its annotations."""
        rows = []
        for verdict in self.verdicts:
            rows.append(
                (
                    verdict.condition,
                    TerminalLine(verdict.status, STATUS_STYLES[verdict.status]),
                    verdict.message,
                )
            )

        if rows:
            yield TerminalTable(("fails if", "", "figures"), rows)
        if self.mended:
            yield f"Looked at: {format_count(self.mended, 'mended rubric')}."
        if self.again:
            yield "Intervals hold at every look, however often this is run."

        for name, good in zip(("before", "now"), self.comparison.good, strict=True):
            yield f"Good {name}: about {good.value:.0%}, by the mean of their probabilities ({format_interval(good)})"

        yield from render_notes(self.comparison.notes)
        if self.unscored:
            yield f"{self.unscored} conversations without a score were left out."

        for path in self.written:
            yield f"Wrote {path}"

        yield TerminalLine(
            "The gate is shut: exit code 4." if self.failed else "The gate is open.",
            "bold",
        )
        # GitHub reads annotations from lines of the output
        if github:
            for workflow_command in iterate_github_workflow_commands(
                self.table, strict=self.strict
            ):
                yield TerminalLine(workflow_command, DATA_STYLE)

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """Conditions, what became of them, and figures."""
        return [(verdict.condition, verdict.status, verdict.message) for verdict in self.verdicts]


def check(
    new: str | Path,
    against: str | Path,
    rubrics: Path | RubricSet,
    *,
    fail_if: Sequence[str],
    again: bool = False,
    strict: bool = False,
    labels: Path | None = None,
    drawn: str | None = None,
    page: Path | None = None,
    xml: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> CheckResult:
    """Check new conversations against a baseline.

    Args:
        new: File, glob, or run of the store.
        against: The baseline, likewise.
        fail_if: Conditions; see `CONDITION_FORMS_HINT`.
        again: Whether the check is run again and again while `new` grows: intervals hold at every
            look.
        strict: Whether a condition that the data leave undecided fails, too.
        xml: Where JUnit's XML is written.

    A rubric that the store knows as mended fails it, too, where it holds more often again; it is
    marked as back again.

    Raises:
        WrongUse: A condition can't be read, or can't be looked at again and again.
    """
    rubric_set = read_unedited(rubrics, run.store)
    # rubrics that the store knows as mended, each with the hook that knows its state
    mended = {}
    for rubrics_of in list_hooks(MendedRubrics):
        for id_, state in rubrics_of.mended_in(run.store, rubric_set).items():
            mended[id_] = (rubrics_of, state)

    # mended rubrics are looked at without any condition, too
    if fail_if or not mended:
        conditions = parse_conditions(fail_if, rubric_set, again=again)
    else:
        conditions = []

    # before the work: neither file may replace an input
    written = tuple(path for path in (page, xml) if path is not None)
    require_distinct_outputs(*written)
    for path in written:
        require_writable_output_path(path, *list_file_names([new, against], rubrics, labels))

    arms, lost = score_arms(
        [against, new],
        rubric_set,
        reading=reading,
        run=run,
        model=model,
        progress=progress,
    )
    thumbs = None
    if labels is not None:
        thumbs = read_label_file(labels, reading)[0]

    # the sample size is planned for the limit of the first condition
    comparison = compare_two(
        arms[0],
        arms[1],
        rubric_set,
        thumbs,
        drawn,
        conditions[0].limit or 0.05 if conditions else 0.05,
    )
    # a mended rubric that holds again fails the gate, whatever the conditions
    back = {}
    for id_, (_, state) in mended.items():
        if result := judge_recurrence(id_, state, arms, rubric_set):
            back[id_] = result

    verdicts = (
        *_decide_conditions(conditions, comparison, arms, rubric_set, again=again),
        *back.values(),
    )
    # the hooks mark it in the store as back, with what showed it
    why = f"{arms[1].name} against {arms[0].name}"
    for rubrics_of in {mended[id_][0] for id_ in back}:
        rubrics_of.mark_back(run.store, rubric_set, back.keys(), why)

    if page is not None:
        write_text(page, render_compare_page([comparison], verdicts))

    if xml is not None:
        write_file(
            xml,
            make_junit_report_of_gate(
                [(verdict.condition, verdict.status, verdict.message) for verdict in verdicts],
                strict=strict,
            ),
        )

    return CheckResult(
        verdicts=verdicts,
        comparison=comparison,
        again=again,
        strict=strict,
        unscored=lost,
        written=written,
        mended=len(mended),
    )


def check_runs(
    store: Store,
    new: str,
    against: str,
    rubric_set: RubricSet,
    fail_if: Sequence[str],
    *,
    again: bool = False,
    strict: bool = False,
    comparison: SampleComparison | None = None,
) -> CheckResult:
    """Check a run of an open store against another, both scored by one rubric set, as `check` does.

    Args:
        comparison: Their comparison, if it was made before.

    Raises:
        WrongUse: A condition can't be read, or can't be looked at again and again.
    """
    conditions = parse_conditions(fail_if, rubric_set, again=again)
    # samples are read again only where the comparison doesn't have what is needed
    if again or comparison is None:
        arms = []
        for name in (against, new):
            arms.append(read_run_arm(store, name, rubric_set))
    else:
        arms = []

    comparison = comparison or compare_two(
        arms[0], arms[1], rubric_set, None, None, conditions[0].limit or 0.05
    )
    verdicts = _decide_conditions(
        conditions,
        comparison,
        arms,
        rubric_set,
        again=again,
    )
    return CheckResult(
        verdicts=verdicts,
        comparison=comparison,
        again=again,
        strict=strict,
        unscored=0,
    )


def _decide_conditions(
    conditions: Sequence[Condition],
    comparison: SampleComparison,
    arms: Sequence[ScoredArm],
    rubric_set: RubricSet,
    *,
    again: bool,
) -> tuple[ConditionResult, ...]:
    # bounds for every look need the conversations themselves, not the comparison
    if again:
        a, b, _ = keep_comparable(arms[0], arms[1])

    verdicts = []
    for condition in conditions:
        verdicts.append(
            decide_condition(
                condition,
                bound_difference_at_every_look(condition.of, a, b, rubric_set)
                if again
                else measure_condition(condition, comparison),
            )
        )

    return tuple(verdicts)


def judge_recurrence(
    id_: str,
    state: object,
    arms: Sequence[ScoredArm],
    rubric_set: RubricSet,
) -> ConditionResult | None:
    """Return the verdict on a mended rubric that holds more often than in the baseline; None where it doesn't.

    The bound holds at every look: a build server asks every night.
    """
    a, b, _ = keep_comparable(arms[0], arms[1])
    figure = bound_difference_at_every_look(f"{HOLDS_PREFIX}{id_}", a, b, rubric_set)
    # a rise counts only if the whole interval is above 0
    if figure.low is None or figure.low <= 0:
        return None

    text = next(rubric.text for rubric in rubric_set.rubrics if rubric.id == id_)
    numbers = (
        f"its share rose by {figure.value:.3f}, 95 % interval {figure.low:.3f} … "
        f"{figure.high:.3f}, n = {figure.n}"
    )
    what = f"{id_}, {state}, is back again"

    return ConditionResult(
        condition=what,
        status="failed",
        figure=figure,
        message=f"{numbers}: {quote_unclear_name(text)}",
    )


def parse_conditions(
    texts: Sequence[str],
    rubric_set: RubricSet,
    *,
    again: bool,
) -> list[Condition]:
    """Read the conditions of a check.

    Raises:
        WrongUse: There is none, or one can't be read, or can't be looked at again and again.
    """
    conditions = [Condition.parse(text, rubric_set) for text in texts]
    if not conditions:
        raise WrongUse(
            "there is no condition",
            hint=f"forms are {CONDITION_FORMS_HINT}",
            option="fail_if",
        )

    # shares, drift and unlikeness have intervals for a single look only
    if again and (
        once := [
            condition.text
            for condition in conditions
            if condition.kind != "difference" or condition.of == "share"
        ]
    ):
        what = f"{once[0]!r} has no interval that holds at every look"
        raise WrongUse(
            what,
            hint="check it by itself, or leave out",
            option="again",
        )

    return conditions


def measure_condition(condition: Condition, comparison: SampleComparison) -> Figure:
    """Return what a condition looks at, with the interval that fits."""
    if condition.kind == "unlike":
        return comparison.watch.unlike
    if condition.kind == "drift":
        stability = comparison.watch.stability[condition.of]
        return Figure(
            stability.value,
            stability.low,
            stability.high,
            stability.after,
        )

    # a share needs labels at random on both sides
    if condition.of == "share":
        share = comparison.share
        if share is None:
            return Figure(
                None,
                undefined=f"{comparison.labels[0]} and {comparison.labels[1]} labels at random are too few",
            )

        return Figure(share.value, share.low, share.high, share.n)

    rubrics = {rubric.id: rubric.difference for rubric in comparison.rubrics}
    return {"p": comparison.probability, "netsat": comparison.netsat, **rubrics}[condition.of]


def bound_difference_at_every_look(
    of: str,
    a: ScoredArm,
    b: ScoredArm,
    rubric_set: RubricSet,
) -> Figure:
    """Bound a difference of means for all looks, whenever one looks and however often.

    Conversations with the same id are pairs; else each side has a sequence of its own, with half of
    α each. A user counts once, with their first conversation: later ones would change a value that
    was already counted.
    """
    # bounds are made for values in 0 … 1, and differences in −1 … 1
    low, high = find_value_range(of, rubric_set)
    before, after = (_collect_first_values_of_users(of, arm, rubric_set) for arm in (a, b))
    # each conversation or user of the new sample is in the baseline, too: pairs bound more tightly
    if len(both := [key for key in after if key in before]) == len(after):
        pairs = []
        for side in (before, after):
            pairs.append(np.array([side[key] for key in both]))

        bounds = bound_mean_difference_at_every_look((pairs[1] - pairs[0]) / (high - low))
        value = float((pairs[1] - pairs[0]).mean())
        n = len(both)
    else:
        # independent samples: half of α for each, and the outer ends of both
        sides = []
        for side in (before, after):
            sides.append(np.array(list(side.values())))

        first, second = (
            ConfidenceSequence(0.025).add((side - low) / (high - low)) for side in sides
        )
        bounds = second.low - first.high, second.high - first.low
        value = float(sides[1].mean() - sides[0].mean())
        n = len(sides[1])
        # a sequence without a mean that fits gives no bounds: crossed ones say so below
        if first.empty or second.empty:
            bounds = 1.0, 0.0

    if bounds[0] > bounds[1]:
        return Figure(
            value,
            None,
            None,
            n,
            undefined="the mean drifts within a sample: no single mean fits it",
        )

    # back from the scaled values to the figure's own unit
    return Figure(
        value,
        bounds[0] * (high - low),
        bounds[1] * (high - low),
        n,
    )


def find_value_range(of: str, rubric_set: RubricSet) -> tuple[float, float]:
    """Return the smallest and largest possible value."""
    if of == "p" or of.startswith(HOLDS_PREFIX):
        return 0.0, 1.0
    if of != "netsat":
        return 0.0, LARGEST_ANSWER_VALUE

    # NetSAT is the sum of SAT answers less the sum of DSAT answers, each of 0 … 10
    sides = []
    for side in ("dsat", "sat"):
        sides.append(sum(rubric.polarity == side for rubric in rubric_set.rubrics))

    return -LARGEST_ANSWER_VALUE * sides[0], LARGEST_ANSWER_VALUE * sides[1]


def _collect_first_values_of_users(
    of: str, arm: ScoredArm, rubric_set: RubricSet
) -> dict[tuple[str, str], float]:
    column = _get_value_column(of, arm, rubric_set)
    first_values: dict[tuple[str, str], float] = {}
    for conversation, value in zip(arm.conversations, column.tolist(), strict=True):
        if conversation.group is None:
            key = ("id", conversation.id)
        else:
            key = ("user", conversation.group)

        # the first answer stands; a missing one leaves the place to a later conversation
        if not np.isnan(value):
            first_values.setdefault(key, value)

    return first_values


def _get_value_column(of: str, arm: ScoredArm, rubric_set: RubricSet) -> Floats:
    if of in ("p", "netsat"):
        return arm.probability if of == "p" else arm.netsat

    # NaN is no answer, and doesn't count as a rubric that doesn't hold
    values = arm.values[
        :, [rubric.id for rubric in rubric_set.rubrics].index(of.removeprefix(HOLDS_PREFIX))
    ]
    return np.asarray(
        np.where(np.isnan(values), np.nan, values > MIDDLE_OPTION_VALUE)
        if of.startswith(HOLDS_PREFIX)
        else values
    )


def decide_condition(condition: Condition, figure: Figure) -> ConditionResult:
    """Decide a condition: the limit is reached by more than chance, ruled out, or neither."""
    ends = []
    for end in (figure.low, figure.high):
        if end is not None:
            ends.append(end)

    if figure.value is None or len(ends) < 2:
        why = figure.undefined or "too few conversations for an interval"
        return ConditionResult(
            condition=condition.text,
            status="undecided",
            figure=figure,
            message=why,
        )

    # in the direction that fails, so that the larger end is always the worse one
    worse = sorted(condition.sign * end for end in ends)
    sure = 0.0
    most = condition.limit
    reached = condition.sign * figure.value >= most
    status: ConditionStatus
    # a failure takes the limit in value, and an interval that excludes no change at all
    if reached and worse[0] > sure:
        status = "failed"
    elif worse[1] < most:
        status = "passed"
    else:
        status = "undecided"

    meaning = {
        "failed": "and that is more than chance",
        "undecided": "neither shown nor ruled out: more conversations decide",
        "passed": "the limit is ruled out",
    }[status]
    # only differences have a sign; drift and shares of texts are positive
    plus = "+" if condition.kind == "difference" else ""
    numbers = f"{figure.value:{plus}.3f}, 95 % interval {ends[0]:{plus}.3f} … {ends[1]:{plus}.3f}, n = {figure.n}"

    return ConditionResult(
        condition=condition.text,
        status=status,
        figure=figure,
        message=f"{numbers}; {meaning}",
    )
