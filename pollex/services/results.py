"""Results of use cases: frozen, with figures and usage as JSON values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pollex.conversations.logs import BadRow
from pollex.gateway.budget import Price, StageUsage, UsageTable
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.text import html_table

if TYPE_CHECKING:
    from pandas import DataFrame

    from pollex.services.roles import Workers

SHOWN = 10
"""Rows of a result that a notebook shows."""


class Result(Protocol):
    """Protocol of the results of all use cases."""

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""


class Shown(ABC):
    """A result that tells itself in a line, shows itself in a notebook, and becomes a table.

    Attributes:
        columns: Those of the table that a notebook shows; empty for all.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def headline(self) -> str:
        """Return the result in a line."""

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
        rows = list(islice(self.records(), SHOWN))
        names = self.columns or tuple(dict.fromkeys(name for row in rows for name in row))
        return html_table(repr(self), names, [[row.get(name, "") for name in names] for row in rows])


def counted(outcomes: Mapping[str, int]) -> str:
    """Return outcomes in a line."""
    return ", ".join(f"{number} {outcome.replace('_', ' ')}" for outcome, number in outcomes.items())


@dataclass(frozen=True)
class Usage:
    """Calls, tokens and cost of a model in a run.

    Attributes:
        price: None where no prices were given: costs are unknown.
        probe_calls: Calls that found out what the endpoint can do.
    """

    table: UsageTable
    price: Price | None = None
    probe_calls: int = 0

    @classmethod
    def of(cls, staff: Workers) -> Usage | None:
        """Return the usage of a run's roles; None where no model worked."""
        if staff.gateway is None:
            return None
        probed = staff.capabilities.calls if staff.capabilities else 0
        return cls(staff.gateway.used, staff.gateway.limits.price, probed)

    @property
    def rows(self) -> dict[str, StageUsage]:
        """The stages and their sum."""
        return self.table.stages | {"all": self.table.total}

    def by_stage(self) -> dict[str, Any]:
        """Return the rows as JSON values."""
        return {
            name: {
                "calls": row.asked,
                "sent": row.sent,
                "known": row.known,
                "prompt_tokens": row.prompt,
                "completion_tokens": row.completion,
                "cost": row.cost(self.price),
                "outcomes": dict(row.outcomes),
            }
            for name, row in self.rows.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the fields that a result adds to its own."""
        return {"usage": self.by_stage(), "probe_calls": self.probe_calls}


def usage_json(usage: Usage | None) -> dict[str, Any]:
    """Return the usage as fields of a result; empty where no model worked."""
    return {} if usage is None else usage.as_json()


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
    return {"n": figures.n, "positives": figures.positives, "negatives": figures.negatives} | _valued(named)


def probability_json(found: ProbabilityFigures) -> dict[str, Any]:
    """Return the figures of probabilities as JSON values."""
    named = {name: getattr(found, name) for name in PROBABILITY_FIGURES}
    return {"n": found.n} | _valued({name: figure for name, figure in named.items() if figure is not None})


def _valued(named: dict[str, Figure]) -> dict[str, Any]:
    return {
        **{name: figure.value for name, figure in named.items()},
        "intervals": {name: [figure.low, figure.high] for name, figure in named.items() if figure.low is not None},
        "undefined": {name: figure.undefined for name, figure in named.items() if figure.undefined},
    }


def calibrator_json(rubrics: RubricSet) -> dict[str, Any] | None:
    """Return the chosen model of probabilities and its figures; None where there is no calibrator."""
    if (record := rubrics.calibrator) is None:
        return None
    return {
        "chosen": record.chosen,
        "why": record.why,
        "compared": [row.model_dump() for row in record.compared],
        "labels": record.labels,
        "calibrated": rubrics.support.enough,
        "labels_missing": rubrics.support.missing,
        "training": record.training and probability_json(record.training),
        "held_out": record.held_out and probability_json(record.held_out),
    }


def support_json(rubrics: RubricSet) -> dict[str, Any]:
    """Return whether the probabilities may be called calibrated."""
    support = rubrics.support
    return {"calibrated": support.enough, "labels": support.labels, "labels_missing": support.missing}


def bad_rows_json(rows: Sequence[BadRow]) -> list[dict[str, str]]:
    """Return where bad rows are, and what is wrong with them."""
    return [{"where": f"{row.source}:{row.line}", "reason": row.reason} for row in rows]
