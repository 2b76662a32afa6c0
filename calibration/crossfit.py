"""Predictions by models that did not see what they predict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.base import clone

from pollex.calibration.estimator import JudgedEstimator, OneAnswer
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Floats, Ints, Questionnaire
from pollex.errors import WrongUse


def dealt(groups: Ints, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Rows of each fold; a group is in one fold only. Folds differ by at most one group.

    Args:
        groups: Of each row `[row]`.

    Raises:
        WrongUse: Fewer groups than folds.
    """
    names = np.unique(groups)
    if len(names) < folds:
        raise WrongUse(f"{len(names)} groups for {folds} folds", remedy="give more texts, or fewer folds")
    parts = np.array_split(rng.permutation(names), folds)
    return [np.flatnonzero(np.isin(groups, part)) for part in parts]


def one_group_out(groups: Ints) -> list[Ints]:
    """Rows of each fold, a fold a group."""
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]


def alone(X: Floats, y: Judgments, rows: Ints) -> tuple[Floats, Judgments]:
    """Some rows and their judgments, numbered anew: a model that is fitted on them sees nothing of the others."""
    place = np.full(len(X), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    own = y.of_rows(rows)
    return X[rows], Judgments(place[own.row], own.question, own.judge, own.answer, own.judges)


def crossfit(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    questions: Questionnaire,
    folds: Sequence[Ints],
    groups: Ints | None = None,
) -> Floats:
    """Distribution of the main answer for each of its judgments, by a clone fitted without the judgment's fold.

    Args:
        model: Left as it is.
        folds: Rows of each; together all rows with a judgment of the main question.
        groups: For a model that chooses by groups, of each row `[row]`.

    Returns:
        `[judgment of the main question, option]`, in the order of `y.of_question(main)`.
    """
    main = y.of_question(questions.index())
    out = np.full((len(main), len(questions.scale().values)), np.nan)
    names = main.names()
    for rows in folds:
        held_out = np.isin(main.row, rows)
        # Without their texts, too: X alone moves a model that standardises it.
        others = np.setdiff1d(np.arange(len(X)), rows)
        own = None if groups is None else groups[others]
        fitted = learnt_quietly(clone(model), *alone(X, y, others), questions, own)
        out[held_out] = fitted.predict_proba(X[main.row[held_out]], names[held_out].tolist())
    return out


def learnt_quietly(
    model: JudgedEstimator, X: Floats, y: Judgments, questions: Questionnaire, groups: Ints | None
) -> JudgedEstimator:
    """The model, fitted, without a warning of answers that are all alike: that is for the whole of the data to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneAnswer)
        return model.fit(X, y, questions=questions, groups=None if groups is None else groups.tolist())
