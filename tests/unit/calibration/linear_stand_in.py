"""A model simple enough to work by hand: expected answers that are linear in X."""

from typing import Any

import numpy as np

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class Linear(JudgedEstimator):
    """Two-option questions whose probability of the second option is a + b·x.

    A missing block counts as its share of `usual`, whatever the rest says.

    Args:
        weights: By question id the intercept and the weights `[1 + column]`.
        usual: What stands in place of a missing value `[column]`.
        shifts: By judge, what their intercept has in addition.
    """

    def __init__(self, weights: dict[str, list[float]], usual: list[float], shifts: dict[str, float]) -> None:
        self.weights = weights
        self.usual = usual
        self.shifts = shifts

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        pass

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        name = self.questionnaire_.scales[question].question
        if name not in self.weights:
            raise WrongUse(f"{name} was not learned")
        intercept, *slopes = self.weights[name]
        shifts = np.array([*(self.shifts.get(judge, 0.0) for judge in self.judges_), 0.0])
        upper = intercept + np.where(np.isnan(X), self.usual, X) @ np.array(slopes) + shifts[judges]
        return np.stack([1 - upper, upper], axis=1)


SHEET = Questionnaire(
    (
        Scale("main", (0.0, 1.0), asked=False),
        Scale("a", (0.0, 1.0)),
        Scale("b", (0.0, 1.0)),
        Scale("c", (0.0, 1.0)),
    ),
    "main",
)
"""One question that people answer, and three yes/no questions that are asked."""


def fitted(weights: dict[str, list[float]], sheet: Questionnaire = SHEET, **changes: Any) -> Linear:
    """The model, with whatever it takes to be fitted: a judgment of each kind, by each judge that has a shift."""
    settings = {"usual": [0.5] * sheet.width, "shifts": {}} | changes
    judges = list(settings["shifts"]) or [None]
    X = np.full((len(judges), sheet.width), 1 / max(len(scale.values) for scale in sheet.asked))
    return Linear(weights, **settings).fit(
        X, [(row, sheet.main, judge, each) for row, judge in enumerate(judges) for each in (0.0, 1.0)], questions=sheet
    )


def certain(*answers: float) -> list[float]:
    """A row of yes/no answers given as the probability of yes; NaN is not asked."""
    return [part for answer in answers for part in (1 - answer, answer)]
