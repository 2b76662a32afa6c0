"""The judge's most probable answer, as it is."""

from typing import ClassVar

import numpy as np

from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.calibration.models.as_is import AsIs, find_own_block


class Argmax(AsIs):
    """All probability on the most probable answer of the question's own block; uniform if missing.

    An answer that it rules out is given with probability 0, so its log-loss is infinite as soon as
    it errs once.
    """

    title: ClassVar[str] = "answer as it is, most probable"

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        block = np.nan_to_num(X[:, find_own_block(self, question)])
        points = np.eye(block.shape[1])[block.argmax(axis=1)]
        answered = block.sum(axis=1, keepdims=True) > 0
        return np.asarray(np.where(answered, points, 1 / block.shape[1]))
