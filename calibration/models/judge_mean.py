"""A judge's own shares of answers for every text, shrunk to everybody's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import Judgments
from pollex.calibration.shares import counts_of, learned_places, shares_of, table_of
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class JudgeMean(JudgedEstimator):
    """A judge's shares of answers to each question; an unknown judge has everybody's.

    Args:
        strength: Weight of everybody's shares, in judgments of each judge.
        smoothing: Number of prior judgments in everybody's shares, spread evenly over the options.
    """

    title: ClassVar[str] = "judge's mean"

    def __init__(self, strength: float = 8.0, smoothing: float = 1.0) -> None:
        self.strength = strength
        self.smoothing = smoothing

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (looks at no text)
        self.shares_: dict[int, Floats] = {}
        for question in np.unique(y.question).tolist():
            own = y.of_question(question)
            options = len(self.questionnaire_.scales[question].values)
            everybody = shares_of(own.answer, np.full(options, 1 / options), self.smoothing)
            counts = counts_of(own.judge, own.answer, len(self.judges_), options)
            self.shares_[question] = _drawn(counts, everybody, self.strength)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        if question not in self.shares_:
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} had no judgments in training",
                remedy="add judgments of it, and fit again",
            )
        # the last row is everybody's, which is where the code of nobody, −1, points
        return self.shares_[question][judges]

    def _state(self) -> State:
        return State({}, table_of("shares", self.shares_))

    def _restore(self, state: State) -> None:
        self.shares_ = learned_places("shares", state.arrays)


def _drawn(counts: Floats, towards: Floats, strength: float) -> Floats:
    """Shrink each judge's shares `[judge + 1, option]` to `towards`."""
    pulled = counts + strength * towards
    total = pulled.sum(axis=1, keepdims=True)
    own: Floats = np.divide(pulled, total, out=np.broadcast_to(towards, pulled.shape).copy(), where=total > 0)
    return own
