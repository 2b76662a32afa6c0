"""The judge's most probable answer to the main question, unchanged."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import Judgments
from pollex.calibration.models.as_is import own_block
from pollex.measures.arrays import Floats, Ints


class Argmax(JudgedEstimator):
    """All probability on the most probable answer of the question's own block.

    Where the block is missing or does not apply, all answers are alike. An answer that it rules out is given with
    probability 0, so its log-loss is infinite as soon as it errs once.
    """

    title: ClassVar[str] = "answer as it is, most probable"
    uses_labels: ClassVar[bool] = False

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002
        own_block(self, self.questionnaire_.index())

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        block = np.nan_to_num(X[:, own_block(self, question)])
        points = np.eye(block.shape[1])[block.argmax(axis=1)]
        given = block.sum(axis=1, keepdims=True) > 0
        chosen: Floats = np.where(given, points, 1 / block.shape[1])
        return chosen

    def _state(self) -> State:
        return State({}, {})

    def _restore(self, state: State) -> None:
        """Do nothing: there is no state."""
