"""A logarithmic pool: the mean of several models' log-probabilities.

Of cumulative links with two options it is one itself: its linear layer and threshold are the means
of theirs. Source: Genest and Zidek 1986, "Combining probability distributions: a critique and an
annotated bibliography", doi:10.1214/ss/1177013825, section 3.3.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import clone

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.models.weighted_sum import WeightedSum
from pollex.measures.arrays import Floats, Ints

MIN_POOLED_PROBABILITY = 1e-9
"""Of a probability that is averaged."""


class LogPool(JudgedEstimator):
    """The mean of several models' log-probabilities, each fitted by itself.

    Args:
        members: The models, not fitted; None: ordinal mixed effects, and a weighted sum with
            deviations.
    """

    title: ClassVar[str] = "pool of models"

    members_: tuple[JudgedEstimator, ...]

    def __init__(self, members: Sequence[JudgedEstimator] | None = None) -> None:
        self.members = members

    def _unfitted(self) -> Sequence[JudgedEstimator]:
        if self.members is not None:
            return self.members
        return (OrdinalMixedEffects(), WeightedSum(deviations=100.0))

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        self.members_ = tuple(clone(member) for member in self._unfitted())
        for member in self.members_:
            member.questionnaire_ = self.questionnaire_
            member.judges_ = self.judges_
            member._learn(X, y, groups)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        # the geometric mean of the members' probabilities, made to sum to 1
        by_member = []
        for member in self.members_:
            by_member.append(member._distribution(X, judges, question))

        mean = np.exp(np.log(np.maximum(by_member, MIN_POOLED_PROBABILITY)).mean(axis=0))
        return np.asarray(mean / mean.sum(axis=1, keepdims=True))

    def _state(self) -> EstimatorState:
        states = [member.state() for member in self.members_]
        arrays = {}
        for number, state in enumerate(states):
            for name, array in state.arrays.items():
                arrays[f"{number}.{name}"] = array

        return EstimatorState({"members": [state.facts for state in states]}, arrays)

    def _restore(self, state: EstimatorState) -> None:
        restored = []
        members = zip(self._unfitted(), state.facts["members"], strict=True)
        for number, (member, facts) in enumerate(members):
            # each member's arrays have its number in front
            prefix = f"{number}."
            arrays = {}
            for name, array in state.arrays.items():
                if name.startswith(prefix):
                    arrays[name.removeprefix(prefix)] = array
            settings = member.get_params(deep=False)
            member_state = EstimatorState(facts, arrays)
            restored.append(
                type(member).from_state(
                    settings,
                    self.questionnaire_,
                    member_state,
                )
            )

        self.members_ = tuple(restored)
