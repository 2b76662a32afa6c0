"""How good a model gets with how many labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from pollex.calibration.crossfit import alone
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.measures import Assessment, Predictions, assess
from pollex.calibration.questionnaire import Floats, Ints, Questionnaire
from pollex.errors import WrongUse

SHARES = tuple(percent / 100 for percent in range(10, 101, 10))


@dataclass(frozen=True)
class Point:
    """What was reached with one share of the training texts.

    Attributes:
        labels: Mean number of labels of the main question that a model was fitted on.
        repeats: Figures of each draw of training texts.
        failed: Draws in which some fold left too little to fit; they are no part of `repeats`.
    """

    share: float
    labels: float
    repeats: tuple[Assessment, ...]
    failed: int = 0

    def mean(self, measure: str) -> float | None:
        """Mean over the repeats; None when the measure is undefined in one of them, or there is none."""
        values = self._values(measure)
        return None if values is None else float(np.mean(values))

    def deviation(self, measure: str) -> float | None:
        """Standard deviation over the repeats, which share texts: it is no standard error. None with fewer than two."""
        values = self._values(measure)
        return None if values is None or len(values) < 2 else float(np.std(values, ddof=1))

    def _values(self, measure: str) -> list[float] | None:
        values = [getattr(repeat, measure).value for repeat in self.repeats]
        return values if values and None not in values else None


def learning_curve(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    rng: np.random.Generator,
    shares: Sequence[float] = SHARES,
    repeats: int = 10,
    groups: Ints | None = None,
    smooth: bool = False,
) -> list[Point]:
    """Cross-fitted figures with a growing share of each fold's training texts; a draw of them grows, it is not redrawn.

    Args:
        model: Left as it is.
        folds: Rows of each; together all rows with a judgment of the main question.
        repeats: Draws of training texts.
        groups: What is drawn together `[row]`; None: each row is its own.
        smooth: Whether smECE is measured, too.
    """
    if not all(0 < share <= 1 for share in shares):
        raise WrongUse(f"shares of {', '.join(f'{s:g}' for s in shares)}", remedy="give shares over 0, up to 1")
    together = np.arange(len(X)) if groups is None else np.unique(groups, return_inverse=True)[1]
    orders = [rng.permutation(int(together.max()) + 1) for _ in range(repeats)]
    points = []
    for share in shares:
        # All of it is the same in every repeat.
        found = [
            _crossfitted(model, X, y, questions, folds, together, o, share) for o in orders[: 1 if share == 1 else None]
        ]
        fitted = [pair for pair in found if pair is not None]
        labels = float(np.mean([count for _, count in fitted])) if fitted else 0.0
        points.append(
            Point(share, labels, tuple(assess(p, smooth=smooth) for p, _ in fitted), len(found) - len(fitted))
        )
    return points


def _crossfitted(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    together: Ints,
    order: Ints,
    share: float,
) -> tuple[Predictions, float] | None:
    """Held-out predictions, and the mean number of labels behind them; None where a fold leaves too little."""
    main = questions.index()
    given = y.of_question(main)
    proba = np.full((len(given), len(questions.scale().values)), np.nan)
    counts = []
    for rows in folds:
        held_out = np.isin(given.row, rows)
        training = y.where(~np.isin(y.row, rows))
        present = order[np.isin(order, together[training.row])]
        kept = present[: max(1, round(share * len(present)))]
        part = training.where(np.isin(together[training.row], kept))
        learnt = part.of_question(main)
        if len(np.unique(learnt.answer)) < 2:
            return None
        counts.append(learnt.labels)
        texts = np.unique(part.row)
        fitted = clone(model).fit(*alone(X, part, texts), questions=questions, groups=together[texts])
        proba[held_out] = fitted.predict_proba(X[given.row[held_out]], given.names()[held_out])
    return Predictions.of(proba, given, questions.scale()), float(np.mean(counts))
