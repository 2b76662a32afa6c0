"""The same shares of answers for every text and judge, as a baseline."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import Judgments
from pollex.calibration.shares import learned_places, shares_of, table_of
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class Constant(JudgedEstimator):
    """Shares of the answers to each question in the training judgments.

    Args:
        smoothing: So many judgments more, spread evenly over the options.
    """

    title: ClassVar[str] = "constant"

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (looks at no text)
        self.shares_: dict[int, Floats] = {}
        for question in np.unique(y.question).tolist():
            options = len(self.questionnaire_.scales[question].values)
            flat = np.full(options, 1 / options)
            self.shares_[question] = shares_of(y.of_question(question).answer, flat, self.smoothing)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        if question not in self.shares_:
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} had no judgments in training",
                remedy="add judgments of it, and fit again",
            )
        return np.tile(self.shares_[question], (len(X), 1))

    def _state(self) -> State:
        return State({}, table_of("shares", self.shares_))

    def _restore(self, state: State) -> None:
        self.shares_ = learned_places("shares", state.arrays)
