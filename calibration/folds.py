"""Folds of whole groups, and models that are fitted without some rows."""

import warnings

import numpy as np

from pollex.calibration.estimator import ConstantLabelsWarning, JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


def assign_groups_to_folds(groups: Ints, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Split rows into folds of whole groups; folds differ by at most one group.

    Args:
        groups: Of each row `[row]`.

    Raises:
        WrongUse: Fewer groups than folds.
    """
    names = np.unique(groups)
    if len(names) < folds:
        raise WrongUse(
            f"{len(names)} groups for {folds} folds",
            hint="give more texts, or fewer folds",
        )

    parts = np.array_split(rng.permutation(names), folds)
    return [np.flatnonzero(np.isin(groups, part)) for part in parts]


def take_rows_with_judgments(X: Floats, y: Judgments, rows: Ints) -> tuple[Floats, Judgments]:
    """Return some rows and their judgments, numbered anew.

    A model that is fitted on them sees nothing of the others.
    """
    # new number of each row `[row]`, −1 for those left out
    place = np.full(len(X), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    taken_over = y.where(np.isin(y.row, rows))

    return X[rows], Judgments(
        place[taken_over.row],
        taken_over.question,
        taken_over.judge,
        taken_over.answer,
        taken_over.judges,
    )


def fit_without_warnings(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    groups: Ints | None,
) -> JudgedEstimator:
    """Return the fitted model, without a warning that all answers are alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantLabelsWarning)
        return model.fit(
            X,
            y,
            questions=questions,
            groups=None if groups is None else groups.tolist(),
        )
