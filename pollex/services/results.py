"""Results of use cases: frozen, with figures and usage as JSON values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from pollex.measures.classification import Assessment
from pollex.measures.intervals import MIN_UNITS_FOR_INTERVAL, Figure
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.usage import make_usage_json
from pollex.text import (
    TerminalLine,
    TerminalLines,
    TerminalTable,
    format_count,
    make_html_table,
    make_json_values,
)

if TYPE_CHECKING:
    from pandas import DataFrame


MAX_ROWS_SHOWN = 10
"""Rows of a result that a notebook shows."""


class Result(ABC):
    """What a use case comes to.

    Attributes:
        json_fields: What `--json` prints of it, where that is fields alone.
        fine: The `outcomes` with which nothing is missing; empty where outcomes don't tell.
    """

    json_fields: ClassVar[tuple[str, ...]] = ()
    fine: ClassVar[tuple[str, ...]] = ()

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed."""
        # rows, outcomes or faults: whatever is missing makes it incomplete
        left = any(getattr(self, name, None) for name in ("bad_rows", "unscored"))
        missing = self.fine and getattr(self, "outcomes", {}).keys() - set(self.fine)
        return (
            not left
            and not missing
            and not any(fault.left_out for fault in getattr(self, "faults", ()))
        )

    @abstractmethod
    def told(self, *given: Any, **asked: Any) -> TerminalLines:
        """Yield what people read of it; the arguments are what the use case says in `shown_with`."""

    def as_json(self) -> dict[str, object]:
        """Return the JSON values that `--json` prints."""
        return self.of(*self.json_fields)

    def of(self, *names: str) -> dict[str, Any]:
        """Return fields as JSON values, `name=path` those of another place; of `usage` what it adds, if anything."""
        # usage has several fields, and none where no model worked
        named = (name.partition("=") for name in names if name != "usage")
        values_by_name = {}
        for name, _, path in named:
            values_by_name[name] = make_json_values(attrgetter(path or name)(self))

        if "usage" in names:
            usage = attrgetter("usage")(self)
            values_by_name |= make_usage_json(usage)
        return values_by_name


class TabularResult(Result):
    """A result that tells itself in a line, shows itself in a notebook, and becomes a table.

    Attributes:
        columns: Those of the table that a notebook shows; empty for all.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def headline(self) -> str:
        """Return the result in a line."""
        return format_outcomes(getattr(self, "outcomes"))  # noqa: B009

    @abstractmethod
    def records(self) -> Iterable[dict[str, object]]:
        """Return the rows of the table."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__.removesuffix('Result')}: {self.headline}>"

    def to_frame(self) -> DataFrame:
        """Return a pandas table."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(list(self.records()))

    def _repr_html_(self) -> str:
        rows = list(islice(self.records(), MAX_ROWS_SHOWN))
        # without columns of its own, all names in the order in which rows have them
        names = self.columns or tuple(dict.fromkeys(name for row in rows for name in row))
        cell_rows = []
        for row in rows:
            cell_rows.append([row.get(name, "") for name in names])

        return make_html_table(
            repr(self),
            names,
            cell_rows,
        )


def describe_unread(number: int, example: str) -> TerminalLines:
    """Yield how many answers could not be read, with one; nothing where all were."""
    if number:
        shown = " ".join(example.split())
        yield TerminalLine(
            f"Note: {format_count(number, 'answer')} could not be read (unparsable), one of them: "
            f"{shown}. An answer counts "
            "where it names an option, in capitals or not; it is never translated or guessed",
            "yellow",
        )


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return outcomes in a line."""
    outcome_texts = []
    for outcome, number in outcomes.items():
        outcome_texts.append(f"{number} {outcome.replace('_', ' ')}")

    return ", ".join(outcome_texts)


def describe_figures(sides: Mapping[str, Assessment | None]) -> TerminalLines:
    """Yield metrics with 95 % intervals, one column for each side."""
    # a side that was not measured has no column
    shown = {}
    for name, figures in sides.items():
        if figures is not None:
            shown[name] = figures

    heads = (
        f"{name} (n = {f.n}: {f.positives} up, {f.negatives} down)" for name, f in shown.items()
    )
    rows = []
    without_interval = False
    for name, title in METRIC_NAMES.items():
        metrics = [figures.shown(name) for figures in shown.values()]
        rows.append((title, *metrics))
        without_interval |= any(
            metric.value is not None and metric.low is None for metric in metrics
        )

    yield TerminalTable(("", *heads), rows)
    if without_interval:
        yield NO_INTERVAL_NOTE


def describe_probabilities(figures: ProbabilityFigures) -> str:
    """Write log-loss and Brier score with intervals, and those of the class share."""
    return (
        f"log-loss {figures.log_loss}, Brier {figures.brier}; "
        f"the share of positive ones alone has {figures.share_log_loss} and {figures.share_brier}"
    )


NO_INTERVAL_NOTE = (
    f"No interval: fewer than {MIN_UNITS_FOR_INTERVAL} conversations, in all or in a class, are "
    "behind the figure; those of one "
    "group or with one text count as one."
)


def tabulate_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> TerminalLines:
    """Yield a table of those columns that the rows have; nothing without rows."""
    if rows:
        # the first row tells which columns all rows have
        shown = []
        for name in columns:
            if rows[0].get(name) is not None:
                shown.append(name)

        shown_rows = []
        for row in rows:
            shown_rows.append([row[name] for name in shown])

        yield TerminalTable(shown, shown_rows)


METRIC_NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "delta_netsat": "ΔNetSAT",
    "yield_rate": "yield at 90 %",
    "confident_accuracy": "accuracy where the set is sure",
}
"""Names of metrics, for people."""

PROBABILITY_METRICS = ("log_loss", "brier", "smece", "share_log_loss", "share_brier", "gain")


def make_figures_json(figures: Assessment | None) -> dict[str, object]:
    """Return metrics by name, with their intervals; null where undefined."""
    if figures is None:
        return {}

    named = {name: getattr(figures, name) for name in METRIC_NAMES}
    return {
        "n": figures.n,
        "positives": figures.positives,
        "negatives": figures.negatives,
    } | _split_undefined_figures(named)


def make_probability_json(figures: ProbabilityFigures) -> dict[str, object]:
    """Return the figures of probabilities as JSON values."""
    named = {}
    for name in PROBABILITY_METRICS:
        named[name] = getattr(figures, name)

    defined_figures = {}
    for name, figure in named.items():
        if figure is not None:
            defined_figures[name] = figure

    return {"n": figures.n} | _split_undefined_figures(defined_figures)


def _split_undefined_figures(named: dict[str, Figure]) -> dict[str, object]:
    # values for programs that want nothing else; intervals and reasons beside them
    undefined = {}
    for name, figure in named.items():
        if figure.undefined:
            undefined[name] = figure.undefined

    return {
        **{name: figure.value for name, figure in named.items()},
        "intervals": {
            name: [figure.low, figure.high]
            for name, figure in named.items()
            if figure.low is not None
        },
        "undefined": undefined,
    }


def make_calibrator_json(rubrics: RubricSet) -> dict[str, object] | None:
    """Return the chosen model of probabilities and its figures; None where there is no calibrator."""
    if (record := rubrics.calibrator) is None:
        return None

    return {
        "chosen": record.chosen,
        "why": record.why,
        "compared": [vars(row) for row in record.compared],
        "labels": record.labels,
        "calibrated": rubrics.support.enough,
        "labels_missing": rubrics.support.missing,
        "training": record.training and make_probability_json(record.training),
        "held_out": record.held_out and make_probability_json(record.held_out),
    }


def describe_share(
    good: Figure | None,
    decided: float | None,
    rubrics: RubricSet,
) -> TerminalLines:
    """Yield the share of good conversations by their probabilities, and what a set at chance is worth."""
    # decisions take costs into account, probabilities don't
    if good is not None and good.value is not None:
        if decided is None:
            of_decisions = ""
        else:
            of_decisions = f"; {decided:.0%} are decided to be good"

        yield (
            f"About {good.value:.0%} of {format_count(good.n, 'conversation')} are good, by the "
            "mean of their probabilities "
            f"({format_interval(good)}){of_decisions}"
        )

    if rubrics.at_chance:
        yield TerminalLine(rubrics.at_chance, "yellow")


def format_interval(share: Figure) -> str:
    """Return the 95 % interval of a share in words."""
    return f"95 % interval {share.low or 0:.0%} to {share.high or 0:.0%}"


def make_calibration_support_json(rubrics: RubricSet) -> dict[str, object]:
    """Return whether the probabilities may be called calibrated."""
    support = rubrics.support
    return {
        "calibrated": support.enough,
        "labels": support.labels,
        "labels_missing": support.missing,
    }
