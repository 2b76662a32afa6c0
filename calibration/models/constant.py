"""Shares of answers, without a look at the text."""

from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class Constant(JudgedEstimator):
    """Shares of the answers to each question in the training judgments, for every text and judge.

    Args:
        smoothing: So many judgments more, spread evenly over the options.
    """

    title: ClassVar[str] = "constant"

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (looks at no text)
        self.shares_: dict[int, Floats] = {}
        for question in np.unique(y.question).tolist():
            labels = y.of_question(question)
            # everybody's shares, smoothed, and each judge's counts `[judge + 1, option]`
            options = len(self.questionnaire_.scales[question].values)
            everybody = np.bincount(labels.answer, minlength=options) + self.smoothing / options
            counts = np.zeros((len(self.judges_) + 1, options))  # the last row is everybody's
            has_judge = labels.judge >= 0
            np.add.at(
                counts,
                (labels.judge[has_judge], labels.answer[has_judge]),
                1,
            )
            self.shares_[question] = self._shrink(counts, everybody / everybody.sum())

    def _shrink(self, counts: Floats, towards: Floats) -> Floats:
        """Return the shares of each judge `[judge + 1, option]`: everybody's.

        Args:
            counts: Answers of each judge, the last row nobody's.
            towards: Everybody's shares `[option]`.
        """
        return np.broadcast_to(towards, counts.shape).copy()

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        if question not in self.shares_:
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} had no judgments in training",
                hint="add judgments of it, and fit again",
            )

        # the last row is everybody's, which is where the code of nobody, −1, points
        return self.shares_[question][judges]

    def _state(self) -> EstimatorState:
        return EstimatorState(
            {},
            {f"shares.{question}": shares for question, shares in self.shares_.items()},
        )

    def _restore(self, state: EstimatorState) -> None:
        self.shares_ = {
            int(name.removeprefix("shares.")): shares for name, shares in state.arrays.items()
        }
