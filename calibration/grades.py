"""Grades that people gave, learned as grades: by LLM-Rubric's network, beside a linear model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.calibration.candidates import CALIBRATION_NETWORK_NAME, DECORRELATED_NETSAT_NAME
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.thumbs import (
    Fold,
    JudgePerConversation,
    flatten_answer_probabilities,
    make_candidates,
    make_thumb_questionnaire,
)
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import PredictionQuality, Predictions, assess_predictions

PREDICTION_GROUPS = 5
REASON_FOR_RATING_MODEL = "it is the model of every rating"

MAX_DISTINCT_GRADES = 11
"""Different grades of one question; where there are more, they are rounded."""


@dataclass(frozen=True, eq=False)
class GradeComparison:
    """How well grades of the main question are predicted without their fold.

    Attributes:
        chosen: Name of the candidate that is taken.
        why: Why this one, in a sentence.
        figures: By candidate.
        reliability: Mean predicted grade, mean given grade and count in fifths of the predictions,
            lowest first.
    """

    chosen: str
    why: str
    figures: dict[str, PredictionQuality]
    reliability: tuple[tuple[float, float, int], ...]


def make_grade_scale(question: str, grades: Floats) -> Scale | None:
    """Make the scale of a rated question; None where fewer than two different grades were given.

    Args:
        grades: NaN where none was given `[row]`.
    """
    distinct = np.unique(round_grades_if_too_many(grades[~np.isnan(grades)]))
    if not 2 <= len(distinct) <= MAX_DISTINCT_GRADES:
        return None
    return Scale(question, tuple(distinct.tolist()), asked=False)


def round_grades_if_too_many(grades: Floats) -> Floats:
    """Round grades to whole ones where there are too many different ones to learn each."""
    if len(np.unique(grades[~np.isnan(grades)])) > MAX_DISTINCT_GRADES:
        return np.round(grades)
    return grades


def make_rating_questionnaire(
    rubrics: Sequence[str],
    options: int,
    scales: Sequence[Scale],
) -> Questionnaire:
    """Make the questionnaire: rubrics, and what people rated, the main question first."""
    return Questionnaire(
        (*make_thumb_questionnaire(rubrics, options).asked, *scales),
        scales[0].question,
    )


def fit_model_to_grades(
    name: str,
    answers: Floats,
    signs: Sequence[float],
    grades: Floats,
    scales: Sequence[Scale],
    judges: JudgePerConversation = None,
    rubrics: Sequence[str] | None = None,
    groups: Ints | None = None,
) -> JudgedEstimator:
    """Return a candidate, fitted to grades.

    Args:
        answers: Probabilities `[row, rubric, option]`.
        signs: `[rubric]`.
        grades: NaN where none was given `[row, question]`.
        scales: Of these questions; the main one first.
        judges: Who graded `[row]`.
        groups: What goes together in its own cross-validation `[row]`.
    """
    ids = rubrics or [str(number) for number in range(len(signs))]
    questions = make_rating_questionnaire(ids, answers.shape[2], scales)
    who: Sequence[str | None] = judges or [None] * len(grades)

    # the network learns every question, the linear models the main one alone
    learned_scales = scales if name == CALIBRATION_NETWORK_NAME else scales[:1]
    labels = []
    for place, scale in enumerate(learned_scales):
        for row in np.flatnonzero(~np.isnan(grades[:, place])).tolist():
            labels.append((row, scale.question, who[row], float(grades[row, place])))

    return make_candidates(signs)[name].fit(
        flatten_answer_probabilities(answers),
        labels,
        None,
        questions,
        None if groups is None else groups.tolist(),
    )


def compare_models_on_grades(
    folds: Sequence[Fold],
    grades: Floats,
    scales: Sequence[Scale],
    judges: JudgePerConversation,
    together: Ints,
    rng: np.random.Generator,
) -> GradeComparison:
    """Fit the network and the linear model without each fold, and measure both there.

    Args:
        folds: Together all rows.
        grades: `[row, question]`, as in `fit_model_to_grades`.
        together: What goes together bears one number `[row]`.
        rng: Of the intervals.
    """
    # predicted distributions of the main grade, by candidate `[row, grade]`
    there = ~np.isnan(grades[:, 0])
    proba = {}
    for name in (DECORRELATED_NETSAT_NAME, CALIBRATION_NETWORK_NAME):
        proba[name] = np.full((len(grades), len(scales[0].values)), np.nan)

    for fold in folds:
        training = ~fold.out & there
        who = None
        if judges is not None:
            who = []
            for judge, inside in zip(judges, training, strict=True):
                if inside:
                    who.append(judge)
        for name, column in proba.items():
            model = fit_model_to_grades(
                name,
                fold.answers[training],
                fold.signs,
                grades[training],
                scales,
                who,
                groups=together[training],
            )
            column[fold.out] = model.predict_proba(
                flatten_answer_probabilities(fold.answers[fold.out])
            )

    # the figures of both, on the rows that have a grade
    answers = np.searchsorted(scales[0].values, grades[there, 0])
    predictions = {}
    for name, p in proba.items():
        predictions[name] = Predictions(
            p[there],
            answers,
            together[there],
            scales[0].values,
        )

    figures = {}
    for name, held_out in predictions.items():
        figures[name] = assess_predictions(held_out, rng, smooth=False)

    network = predictions[CALIBRATION_NETWORK_NAME]
    # mean predicted and mean given grade in each fifth of the predictions
    parts = np.array_split(
        np.argsort(network.expected, kind="stable"),
        min(PREDICTION_GROUPS, len(network)),
    )
    fifths = []
    for part in parts:
        fifths.append(
            (float(network.expected[part].mean()), float(network.given[part].mean()), len(part))
        )

    return GradeComparison(
        CALIBRATION_NETWORK_NAME, REASON_FOR_RATING_MODEL, figures, tuple(fifths)
    )
