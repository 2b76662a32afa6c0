"""Results of use cases: frozen, with figures and usage as JSON values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pollex.gateway.budget import Price, StageUsage, UsageTable
from pollex.measures.classification import Assessment
from pollex.measures.intervals import FEWEST, Figure
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.text import Line, Rows, TerminalLines, count, encode, html_table

if TYPE_CHECKING:
    from pandas import DataFrame

    from pollex.services.roles import RunRoles

MOST_SHOWN_ROWS = 10
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

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return self.of(*self.json_fields)

    def of(self, *names: str) -> dict[str, Any]:
        """Return fields as JSON values, `name=path` those of another place; of `usage` what it adds, if anything."""
        # usage has several fields, and none where no model worked
        named = (name.partition("=") for name in names if name != "usage")
        values_by_name = {}
        for name, _, path in named:
            values_by_name[name] = encode(attrgetter(path or name)(self))

        return values_by_name | (usage_json(getattr(self, "usage")) if "usage" in names else {})  # noqa: B009


class Shown(Result):
    """A result that tells itself in a line, shows itself in a notebook, and becomes a table.

    Attributes:
        columns: Those of the table that a notebook shows; empty for all.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def headline(self) -> str:
        """Return the result in a line."""
        return line_of_outcomes(getattr(self, "outcomes"))  # noqa: B009

    @abstractmethod
    def records(self) -> Iterable[dict[str, Any]]:
        """Return the rows of the table."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__.removesuffix('Result')}: {self.headline}>"

    def to_frame(self) -> DataFrame:
        """Return a pandas table."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(list(self.records()))

    def _repr_html_(self) -> str:
        rows = list(islice(self.records(), MOST_SHOWN_ROWS))
        # without columns of its own, all names in the order in which rows have them
        names = self.columns or tuple(dict.fromkeys(name for row in rows for name in row))
        return html_table(
            repr(self),
            names,
            [[row.get(name, "") for name in names] for row in rows],
        )


def describe_unread(number: int, example: str) -> TerminalLines:
    """Yield how many answers could not be read, with one; nothing where all were."""
    if number:
        shown = " ".join(example.split())
        yield Line(
            f"Note: {count(number, 'answer')} could not be read (unparsable), one of them: {shown}. An answer counts "
            "where it names an option, in capitals or not; it is never translated or guessed",
            "yellow",
        )


def line_of_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return outcomes in a line."""
    return ", ".join(
        f"{number} {outcome.replace('_', ' ')}" for outcome, number in outcomes.items()
    )


@dataclass(frozen=True)
class ModelUsage:
    """Calls, tokens and cost of a model in a run.

    Attributes:
        price: None where no prices were given: costs are unknown.
        probe_calls: Calls that found out what the endpoint can do.
        known_answers: Answers of earlier runs, for which no call was made.
    """

    table: UsageTable
    price: Price | None = None
    probe_calls: int = 0
    known_answers: int = 0

    @classmethod
    def of(cls, staff: RunRoles) -> ModelUsage | None:
        """Return the usage of a run's roles; None where no model worked."""
        known_answers = staff.known_answers
        # nobody was asked: the usage is only worth telling if answers were known
        if staff.gateway is None:
            if known_answers:
                return cls(UsageTable(), known_answers=known_answers)
            return None

        probed = staff.capabilities.calls if staff.capabilities else 0
        return cls(
            staff.gateway.used,
            staff.gateway.limits.price,
            probed,
            known_answers,
        )

    @property
    def rows(self) -> dict[str, StageUsage]:
        """The stages and their sum."""
        return self.table.stages | {"all": self.table.total}

    def by_stage(self) -> dict[str, Any]:
        """Return the rows as JSON values."""
        rows: dict[str, Any] = {}
        for name, row in self.rows.items():
            rows[name] = {
                "calls": row.asked,
                "sent": row.sent,
                "known": row.known,
                "prompt_tokens": row.prompt,
                "completion_tokens": row.completion,
                "cost": row.cost(self.price),
                "outcomes": dict(row.outcomes),
                **_estimated_json(row, self.price),
            }

        return rows

    def told(self) -> TerminalLines:
        """Yield a table by stage, with costs if known, and which models answered where these are several."""
        costs = () if self.price is None else ("cost",)
        # the sum of all stages is the last row
        rows: list[tuple[object, ...]] = []
        for name, row in self.rows.items():
            outcomes = ", ".join(f"{n} {kind}" for kind, n in sorted(row.outcomes.items()))
            spent = (_written_cost(row, self.price),) if costs else ()
            tokens = [_written_tokens(row, name) for name in ("prompt", "completion")]
            rows.append((name, row.asked, row.sent, row.known, *tokens, *spent, outcomes))

        yield Rows(
            ("stage", "calls", "sent", "known", "tokens in", "tokens out", *costs, "outcomes"),
            rows,
        )
        # tokens that the endpoint didn't count are estimates, and marked as such
        if uncounted := self.table.total.uncounted:
            cost = "" if self.price is None else " and their cost"
            calls = count(uncounted, "call")
            yield f"Note: the endpoint didn't count the tokens of {calls}: they{cost} are estimated (≈)"

        if self.known_answers:
            yield f"{self.known_answers} answers were known from earlier runs: no call was made for them."

        # an endpoint may answer by another model than the one that was named
        if len(models := self.table.models) > 1:
            listed = ", ".join(
                f"{model} {fingerprint} × {n}".strip() for (model, fingerprint), n in models.items()
            )
            yield Line(f"Note: several models answered: {listed}", "yellow")

    @property
    def planned(self) -> str:
        """Say in a line how many calls and tokens are planned, and at what cost."""
        total = self.table.total
        cost = total.cost(self.price)
        if self.price is None or cost is None:
            priced = ""
        else:
            priced = f", cost {cost:.4g}"

        return (
            f"{count(total.sent, 'call')}, {total.prompt} tokens in, {total.completion} out{priced}"
        )

    @property
    def summary(self) -> str:
        """Say in a line what was asked, what it cost, and what was known already."""
        total = self.table.total
        tokens_in, tokens_out = (_written_tokens(total, name) for name in TOKENS)
        parts = [count(total.sent, "call"), f"{tokens_in} tokens in, {tokens_out} out"]
        if self.price is not None:
            parts.append(f"cost {_written_cost(total, self.price)}")
        if total.known:
            # calls whose reply the ledger has, and answers for which no call was made at all
            parts.append(f"{total.known} more were known already")
        if self.known_answers:
            parts.append(f"{self.known_answers} answers of earlier runs were not asked again")

        return f"Model: {'; '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields that a result adds to its own."""
        return {
            "usage": self.by_stage(),
            "probe_calls": self.probe_calls,
            "known_answers": self.known_answers,
        }


TOKENS: tuple[Literal["prompt", "completion"], ...] = ("prompt", "completion")


def _written_tokens(row: StageUsage, name: Literal["prompt", "completion"]) -> str:
    # what the endpoint counted, and an estimate for calls that it didn't count
    counted = getattr(row, name)
    estimated = getattr(row, f"{name}_estimated")
    if row.uncounted:
        return f"≈ {counted + estimated}"
    return str(counted)


def _written_cost(row: StageUsage, price: Price | None) -> str:
    cost = row.cost(price)
    if cost is not None:
        return f"{cost:.4f}"

    estimated = row.estimated_cost(price)
    return "unknown" if estimated is None else f"≈ {estimated:.4f}"


def _estimated_json(row: StageUsage, price: Price | None) -> dict[str, Any]:
    """Return what is estimated of calls whose tokens the endpoint didn't count; empty where it counted all."""
    if not row.uncounted:
        return {}

    tokens = {
        "prompt_tokens": row.prompt_estimated,
        "completion_tokens": row.completion_estimated,
    }
    return {
        "uncounted": row.uncounted,
        "estimated": tokens | {"cost": row.estimated_cost(price)},
    }


def usage_by_stage(usage: ModelUsage | None) -> TerminalLines:
    """Yield calls, tokens and cost by stage, where a model worked."""
    if usage is not None:
        yield from usage.told()


def usage_json(usage: ModelUsage | None) -> dict[str, Any]:
    """Return the usage as fields of a result; empty where no model worked."""
    return {} if usage is None else usage.as_json()


def describe_figures(sides: Mapping[str, Assessment | None]) -> TerminalLines:
    """Yield metrics with 95 % intervals, one column for each side."""
    # a side that was not measured has no column
    shown = {name: figures for name, figures in sides.items() if figures is not None}
    heads = (
        f"{name} (n = {f.n}: {f.positives} up, {f.negatives} down)" for name, f in shown.items()
    )
    rows = []
    without_interval = False
    for name, title in FIGURES.items():
        metrics = [figures.shown(name) for figures in shown.values()]
        rows.append((title, *metrics))
        without_interval |= any(
            metric.value is not None and metric.low is None for metric in metrics
        )

    yield Rows(("", *heads), rows)
    if without_interval:
        yield WITHOUT_INTERVAL


def describe_probabilities(figures: ProbabilityFigures) -> str:
    """Write log-loss and Brier score with intervals, and those of the class share."""
    return (
        f"log-loss {figures.log_loss}, Brier {figures.brier}; "
        f"the share of positive ones alone has {figures.share_log_loss} and {figures.share_brier}"
    )


WITHOUT_INTERVAL = (
    f"No interval: fewer than {FEWEST} conversations, in all or in a class, are behind the figure; those of one "
    "group or with one text count as one."
)


def tabulate_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> TerminalLines:
    """Yield a table of those columns that the rows have; nothing without rows."""
    if rows:
        # the first row tells which columns all rows have
        shown = [name for name in columns if rows[0].get(name) is not None]
        yield Rows(shown, [[row[name] for name in shown] for row in rows])


FIGURES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "delta_netsat": "ΔNetSAT",
    "yield_rate": "yield at 90 %",
    "confident_accuracy": "accuracy outside the window",
}
"""Names of metrics, for people."""

PROBABILITY_FIGURES = ("log_loss", "brier", "smece", "share_log_loss", "share_brier", "gain")


def figures_json(figures: Assessment | None) -> dict[str, Any]:
    """Return metrics by name, with their intervals; null where undefined."""
    if figures is None:
        return {}

    named = {name: getattr(figures, name) for name in FIGURES}
    return {
        "n": figures.n,
        "positives": figures.positives,
        "negatives": figures.negatives,
    } | _valued(named)


def probability_json(figures: ProbabilityFigures) -> dict[str, Any]:
    """Return the figures of probabilities as JSON values."""
    named = {}
    for name in PROBABILITY_FIGURES:
        named[name] = getattr(figures, name)

    return {"n": figures.n} | _valued(
        {name: figure for name, figure in named.items() if figure is not None}
    )


def _valued(named: dict[str, Figure]) -> dict[str, Any]:
    # values for programs that want nothing else; intervals and reasons beside them
    return {
        **{name: figure.value for name, figure in named.items()},
        "intervals": {
            name: [figure.low, figure.high]
            for name, figure in named.items()
            if figure.low is not None
        },
        "undefined": {name: figure.undefined for name, figure in named.items() if figure.undefined},
    }


def calibrator_json(rubrics: RubricSet) -> dict[str, Any] | None:
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
        "training": record.training and probability_json(record.training),
        "held_out": record.held_out and probability_json(record.held_out),
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
            f"About {good.value:.0%} of {count(good.n, 'conversation')} are good, by the mean of their probabilities "
            f"({write_interval(good)}){of_decisions}"
        )

    if rubrics.at_chance:
        yield Line(rubrics.at_chance, "yellow")


def write_interval(share: Figure) -> str:
    """Return the 95 % interval of a share in words."""
    return f"95 % interval {share.low or 0:.0%} to {share.high or 0:.0%}"


def support_json(rubrics: RubricSet) -> dict[str, Any]:
    """Return whether the probabilities may be called calibrated."""
    support = rubrics.support
    return {
        "calibrated": support.enough,
        "labels": support.labels,
        "labels_missing": support.missing,
    }
