"""The figures that were to be reached, and those that were."""

from dataclasses import dataclass

from llm_rubric_methods import (
    CHOSEN,
    CHOSEN_ONCE,
    CHOSEN_SHIFT,
    CV,
    ORACLE,
    REAL,
    SYSTEMS,
    predictors,
)
from llm_rubric_tables import Rows


@dataclass(frozen=True)
class Target:
    """One line of the checklist.

    Attributes:
        bound: What is to be reached.
        least: Whether `bound` is a lower bound.
        reached: None when it was not measured.
    """

    what: str
    bound: float
    least: bool
    reached: float | None

    @property
    def met(self) -> bool:
        """Whether it is reached, without rounding."""
        if self.reached is None:
            return False
        return self.reached >= self.bound if self.least else self.reached <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        if self.reached is None:
            return f"not measured  {self.what:<62}{sign} {self.bound:g}"
        return f"{'met' if self.met else 'missed':<14}{self.what:<62}{sign} {self.bound:<6g} {self.reached:.4f}"


def targets(rows: Rows) -> list[Target]:
    """The checklist."""
    return [*_cross_validated(rows), *_real(rows), *_oracle(rows)]


def _cross_validated(rows: Rows) -> list[Target]:
    bounds = (
        ("pearson", 0.445, True),
        ("spearman", 0.455, True),
        ("rmse", 0.738, False),
        ("log_loss", 1.050, False),
        ("smece", 0.035, False),
    )
    places = (
        ("synthetic CV, chosen in each fold", rows.get((CHOSEN, CV))),
        ("synthetic CV, chosen once", rows.get((CHOSEN_ONCE, CV))),
    )
    return [
        Target(f"{what}: {n}", b, least, row and row.mean(n))
        for what, row in places
        for n, b, least in bounds
    ]


def _real(rows: Rows) -> list[Target]:
    """Of the calibrator's choice, which mixes what it can; and of the row that the same evidence puts first."""
    first = _first_elsewhere(rows)
    title = f"{predictors()[first].title.strip()}, first there" if first else "the row first there"
    chosen = rows.get((CHOSEN_SHIFT, REAL)), rows.get((first, REAL)) if first else None
    bounds = (("pearson", 0.275, True), ("rmse", 0.766, False), ("log_loss", 1.175, False))
    whats = "real, chosen leaving a system out", f"real, {title}"
    found = [
        Target(f"{what}: {n}", b, least, row and row.mean(n))
        for what, row in zip(whats, chosen, strict=True)
        for n, b, least in bounds
    ]
    spread = [
        Target(
            f"{whats[0]}: sd of {n} over seeds", 0.01, False, chosen[0] and chosen[0].deviation(n)
        )
        for n, *_ in bounds
    ]
    return [*found, *spread]


def _first_elsewhere(rows: Rows) -> str | None:
    """Key of the row with the smallest log-loss where one synthetic system was left out."""
    losses = {key: row.mean("log_loss") for (key, where), row in rows.items() if where == SYSTEMS}
    known = {key: loss for key, loss in losses.items() if loss is not None}
    return min(known, key=known.__getitem__, default=None)


def _oracle(rows: Rows) -> list[Target]:
    row = rows.get((ORACLE, CV))
    return [Target("synthetic CV, oracle: pearson", 0.72, True, row and row.mean("pearson"))]
