"""Predictions by models that did not see what they predict."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.folds import (
    assign_groups_to_folds,
    fit_without_warnings,
    take_rows_with_judgments,
)
from pollex.calibration.judgments import Judgments, pair_predictions_with_judgments
from pollex.calibration.questionnaire import Questionnaire
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import PredictionQuality, Predictions, assess_predictions


def assign_judged_folds(
    groups: Ints,
    judged: Ints,
    folds: int,
    rng: np.random.Generator,
) -> list[Ints]:
    """Split rows into folds of whole groups, each with a group of rows that were judged.

    Args:
        judged: Rows with a judgment of the main question.
    """
    # rows whose group has no judgment join the first group that has one
    present = np.unique(groups[judged])
    return assign_groups_to_folds(
        np.where(np.isin(groups, present), groups, present[0]),
        folds,
        rng,
    )


def leave_one_group_out(groups: Ints) -> list[Ints]:
    """Return the rows of each fold, one fold for each group."""
    rows: list[Ints] = []
    for group in np.unique(groups):
        rows.append(np.flatnonzero(groups == group))
    return rows


def predict_out_of_fold(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    groups: Ints | None = None,
) -> Floats:
    """Predict the main answer of each judgment by a clone fitted without its fold.

    Args:
        model: Left as it is.
        folds: Rows of each; together all rows with a judgment of the main question.
        groups: For a model that chooses by groups, of each row `[row]`.

    Returns:
        `[judgment of the main question, option]`, in the order of `y.of_question(main)`.
    """
    # NaN stays where no fold has a judgment's row
    main = y.of_question(questions.index())
    out = np.full((len(main), len(questions.scale().values)), np.nan)
    names = main.names()
    for rows in folds:
        held_out = np.isin(main.row, rows)
        # Without their texts, too: X alone moves a model that standardizes it.
        others = np.setdiff1d(np.arange(len(X)), rows)
        training_groups = None if groups is None else groups[others]
        fitted = fit_without_warnings(
            clone(model),
            *take_rows_with_judgments(X, y, others),
            questions,
            training_groups,
        )
        out[held_out] = fitted.predict_proba(
            X[main.row[held_out]],
            names[held_out].tolist(),
        )

    return out


LEARNING_CURVE_SHARES = tuple(percent / 100 for percent in range(10, 101, 10))


@dataclass(frozen=True)
class LearningCurvePoint:
    """Figures at one share of the training texts.

    Attributes:
        labels: Mean number of labels of the main question that a model was fitted on.
        repeats: Figures of each draw of training texts.
        failed: Draws in which some fold left too little to fit; they are not in `repeats`.
    """

    share: float
    labels: float
    repeats: tuple[PredictionQuality, ...]
    failed: int = 0

    def mean(self, measure: str) -> float | None:
        """Return the mean over the repeats; None if undefined in any."""
        values = self._values(measure)
        if values is None:
            return None
        return float(np.mean(values))

    def deviation(self, measure: str) -> float | None:
        """Return the standard deviation over the repeats; None with fewer than two.

        Repeats share texts, so this is no standard error.
        """
        values = self._values(measure)
        if values is None or len(values) < 2:
            return None
        return float(np.std(values, ddof=1))

    def _values(self, measure: str) -> list[float] | None:
        values = []
        for repeat in self.repeats:
            values.append(getattr(repeat, measure).value)

        if values and None not in values:
            return values
        return None


def compute_learning_curve(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    rng: np.random.Generator,
    shares: Sequence[float] = LEARNING_CURVE_SHARES,
    repeats: int = 10,
    groups: Ints | None = None,
) -> list[LearningCurvePoint]:
    """Compute cross-fitted figures for growing shares of each fold's training texts.

    Args:
        model: Left as it is.
        folds: Rows of each; together all rows with a judgment of the main question.
        repeats: Draws of training texts.
        groups: What is drawn together `[row]`; None: each row is its own.
    """
    if not all(0 < share <= 1 for share in shares):
        raise WrongUse(
            f"shares of {', '.join(f'{s:g}' for s in shares)}",
            hint="give shares over 0, up to 1",
        )

    # number of each row's group `[row]`, and an order of the groups for each repeat
    if groups is None:
        together = np.arange(len(X))
    else:
        together = np.unique(groups, return_inverse=True)[1]

    orders = []
    for _ in range(repeats):
        orders.append(rng.permutation(int(together.max()) + 1))

    points = []
    for share in shares:
        # All of it is the same in every repeat.
        orders_tried = orders[:1] if share == 1 else orders
        draws = []
        for order in orders_tried:
            draws.append(
                _predict_held_out(
                    model,
                    X,
                    y,
                    questions,
                    folds,
                    together,
                    order,
                    share,
                )
            )

        fitted = []
        for draw in draws:
            if draw is not None:
                fitted.append(draw)

        # figures of the draws that could be fitted; the others are counted
        if fitted:
            labels = float(np.mean([count for _, count in fitted]))
        else:
            labels = 0.0

        figures = tuple(assess_predictions(predictions, smooth=False) for predictions, _ in fitted)
        points.append(LearningCurvePoint(share, labels, figures, len(draws) - len(fitted)))

    return points


def _predict_held_out(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    together: Ints,
    order: Ints,
    share: float,
) -> tuple[Predictions, float] | None:
    """Predict held-out texts and average the label counts; None with too few labels."""
    main = questions.index()
    main_judgments = y.of_question(main)
    proba = np.full((len(main_judgments), len(questions.scale().values)), np.nan)
    counts = []
    for rows in folds:
        # the first groups in this repeat's order, of those outside the fold
        held_out = np.isin(main_judgments.row, rows)
        training = y.where(~np.isin(y.row, rows))
        present = order[np.isin(order, together[training.row])]
        training_groups = present[: max(1, round(share * len(present)))]
        part = training.where(np.isin(together[training.row], training_groups))
        # a model needs two different answers
        learned = part.of_question(main)
        if len(np.unique(learned.answer)) < 2:
            return None
        counts.append(learned.labels)
        texts = np.unique(part.row)
        fitted = clone(model).fit(
            *take_rows_with_judgments(X, part, texts),
            questions=questions,
            groups=together[texts],
        )
        proba[held_out] = fitted.predict_proba(
            X[main_judgments.row[held_out]],
            main_judgments.names()[held_out],
        )

    return pair_predictions_with_judgments(proba, main_judgments, questions.scale()), float(
        np.mean(counts)
    )
