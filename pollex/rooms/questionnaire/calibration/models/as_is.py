"""The judge's answer as it is: what any calibrator has to beat."""

from typing import ClassVar

import numpy as np

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class AsIs(JudgedEstimator):
    """Probabilities of the question's own block, p / Z; uniform if missing.

    Learns nothing. Its prediction is the expected answer Σ p·value / Z.
    """

    title: ClassVar[str] = "answer as it is, expected"
    uses_labels: ClassVar[bool] = False

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002
        find_own_block(self, self.questionnaire_.index())

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        block = X[:, find_own_block(self, question)]
        mass = block.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(
            block,
            mass,
            out=np.full_like(block, 1 / block.shape[1]),
            where=mass > 0,
        )
        return shares

    def _state(self) -> EstimatorState:
        return EstimatorState({}, {})

    def _restore(self, state: EstimatorState) -> None:
        """Do nothing: there is no state."""


def find_own_block(model: JudgedEstimator, question: int) -> slice:
    """Return the columns of X with the judge's own answer to a question.

    Raises:
        WrongUse: The judge was not asked it.
    """
    name = model.questionnaire_.scales[question].question
    if name not in model.questionnaire_.blocks:
        raise WrongUse(
            f"the judge was not asked {name!r}, so there is no answer to take as it is",
            hint="ask it, or use a model that predicts it from the other questions",
        )

    return model.questionnaire_.blocks[name]
