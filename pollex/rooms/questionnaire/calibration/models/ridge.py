"""Ridge regression on expected scores with judge intercepts; residuals give the distribution."""

from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from pollex.calibration.cumulative_link import convert_cumulative_to_option_probabilities
from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.features import Inputs, fit_model_inputs, restore_model_inputs
from pollex.calibration.judgments import Judgments
from pollex.measures.arrays import Floats, Ints

LEAST_PROBABILITY = 1e-9
"""No answer is given a smaller probability."""

FITTED_ARRAYS = ("weights", "deviation")


class RidgeWithJudge(JudgedEstimator):
    """Least squares for the expected answer; answers are normal around it, cut at midpoints.

    The normal's deviation is that under which the answers are most likely, each predicted by the
    regression that did not see it: its left-out residual is e / (1 − h). Source: Allen 1974,
    doi:10.1080/00401706.1974.10489157.

    Args:
        shared: Penalty on the slopes, of standardized inputs.
        judges: Penalty on the judges' intercepts; None leaves them out.
    """

    title: ClassVar[str] = "ridge with judge"

    def __init__(self, shared: float = 30.0, judges: float | None = 5.0) -> None:
        self.shared = shared
        self.judges = judges

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (cross-validates nothing)
        self._require_order("its answers have no mean")
        self.inputs_: Inputs = fit_model_inputs(X[np.unique(y.row)], self.questionnaire_)
        # least squares with a penalty, in closed form
        labels = y.of_question(self.questionnaire_.index())
        target = self._values()[labels.answer]
        D = self._design(self.inputs_.of(X).rows[labels.row], labels.judge)
        penalty = self._penalty(self.judges, self.shared)
        gram = D.T @ D + np.diag(penalty)
        self.weights_: Floats = np.asarray(
            np.linalg.solve(gram, D.T @ target),
            dtype=np.float64,
        )
        # each judgment's prediction without itself, by the diagonal of the hat matrix
        hat = ((D @ np.linalg.inv(gram)) * D).sum(axis=1)
        left_out = target - (target - D @ self.weights_) / np.maximum(1 - hat, LEAST_PROBABILITY)
        self.deviation_: Floats = np.array(
            [_fit_deviation(left_out, labels.answer, self._midpoints())]
        )

    def _design(self, F: Floats, judges: Ints) -> Floats:
        who = (judges[:, None] == np.arange(len(self.judges_))).astype(np.float64)
        return np.concatenate([np.ones((len(F), 1)), F, who], axis=1)

    def _penalty(self, judges: float | None, shared: float) -> Floats:
        # an intercept that is left out is one that is held at nothing
        strength = 1e12 if judges is None else judges
        return np.concatenate(
            [[0.0], np.full(self.inputs_.width, shared), np.full(len(self.judges_), strength)]
        )

    def _values(self) -> Floats:
        return np.array(self.questionnaire_.scale().values)

    def _midpoints(self) -> Floats:
        values = self._values()
        return np.asarray((values[1:] + values[:-1]) / 2)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        self._require_main(question)
        mean = self._design(self.inputs_.of(X).rows, judges) @ self.weights_
        return integrate_normal_between(
            mean,
            float(self.deviation_[0]),
            self._midpoints(),
        )

    def _state(self) -> EstimatorState:
        learned = {name: getattr(self, f"{name}_") for name in FITTED_ARRAYS}
        return EstimatorState({}, self.inputs_.arrays() | learned)

    def _restore(self, state: EstimatorState) -> None:
        self.inputs_ = restore_model_inputs(self.questionnaire_, state.arrays)
        self.weights_, self.deviation_ = (state.arrays[name] for name in FITTED_ARRAYS)


def integrate_normal_between(mean: Floats, deviation: float, midpoints: Floats) -> Floats:
    """Return probability between neighboring midpoints under a normal around each mean `[row, option]`."""
    return convert_cumulative_to_option_probabilities(
        ndtr((midpoints[None, :] - mean[:, None]) / deviation)
    )


def _fit_deviation(mean: Floats, answers: Ints, midpoints: Floats) -> float:
    """Find the deviation with the largest likelihood, from 1/50 to 50 midpoint ranges."""
    # searched on the scale of logarithms
    unit = float(np.ptp(midpoints)) or 1.0

    def loss(log: float) -> float:
        proba = integrate_normal_between(mean, unit * np.exp(log), midpoints)
        return -float(np.log(proba[np.arange(len(answers)), answers]).sum())

    bounds = (-np.log(50), np.log(50))
    return float(unit * np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
