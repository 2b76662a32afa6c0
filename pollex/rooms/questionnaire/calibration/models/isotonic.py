"""Isotonic regression by judge, of the answer on the LLM's expected answer."""

from typing import ClassVar

import numpy as np
from sklearn.isotonic import IsotonicRegression

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.calibration.models.as_is import find_own_block

IsotonicCurves = tuple[Floats, Floats]
"""Scores at which a step begins or ends `[knot]`, ascending, and P(answer > k) there `[knot, options − 1]`."""


class IsotonicByJudge(JudgedEstimator):
    """P(answer > k) as an isotonic function of the expected answer, by judge.

    A judge's curves are mixed with everybody's in the ratio of the judge's labels to `strength`.
    The order of the curves holds by itself: isotonic regression of a larger target is nowhere
    smaller.

    Source: Henzi, Ziegel & Gneiting 2021, "Isotonic distributional regression",
        doi:10.1111/rssb.12450.

    Args:
        strength: Everybody's curve counts as so many labels of each judge; 0: the judge's own
            alone.
        smoothing: So many judgments with the shares of all are mixed into everybody's curve.
    """

    title: ClassVar[str] = "isotonic regression per judge"

    def __init__(self, strength: float = 10.0, smoothing: float = 10.0) -> None:
        self.strength = strength
        self.smoothing = smoothing

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (cross-validates nothing)
        question = self.questionnaire_.index()
        self._require_order("nothing can rise with it")
        labels = y.of_question(question)
        # rows whose answer is missing say nothing of the curve
        scores = self._scores(X, question)[labels.row]
        usable = ~np.isnan(scores)
        scores = scores[usable]
        judges = labels.judge[usable]
        self.above_: Floats = self._targets(labels.answer).mean(axis=0)
        targets = self._targets(labels.answer[usable])
        # a judge's curve is trusted by the judge's labels
        counts = np.bincount(judges[judges >= 0], minlength=len(self.judges_))
        self.trust_: Floats = counts / np.maximum(counts + self.strength, 1e-12)
        # one curve a judge, and everybody's last
        curves = []
        for j in range(len(counts)):
            curves.append(_fit_isotonic_curves(scores[judges == j], targets[judges == j]))
        self.curves_: list[IsotonicCurves] = curves
        self.curves_.append(_fit_isotonic_curves(scores, targets))
        self.share_ = np.array([len(scores) / max(len(scores) + self.smoothing, 1e-12)])

    def _scores(self, X: Floats, question: int) -> Floats:
        find_own_block(self, question)
        place = [scale.question for scale in self.questionnaire_.asked].index(
            self.questionnaire_.main
        )
        return self.questionnaire_.expected(X)[:, place]

    def _targets(self, answers: Ints) -> Floats:
        """Tell whether the answer is above each option but the last `[judgment, options − 1]`."""
        options = len(self.questionnaire_.scale().values)
        return (answers[:, None] > np.arange(options - 1)).astype(np.float64)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        self._require_main(question)
        scores = self._scores(X, question)
        # everybody's curve, mixed with everybody's shares `[row, options − 1]`
        everybody = _interpolate_levels(self.curves_[-1], scores, self.above_)
        above = self.share_ * everybody + (1 - self.share_) * self.above_

        # a known judge's own curve takes its part of the weight
        for judge in np.unique(judges[judges >= 0]).tolist():
            rows = judges == judge
            trust = np.where(np.isnan(scores[rows]), 0.0, self.trust_[judge])[:, None]
            of_judge = _interpolate_levels(self.curves_[judge], scores[rows], self.above_)
            above[rows] = trust * of_judge + (1 - trust) * above[rows]

        # probabilities are the differences of neighbouring levels, from 1 down to 0
        bounds = np.concatenate(
            [np.ones((len(X), 1)), above, np.zeros((len(X), 1))],
            axis=1,
        )
        return np.maximum(-np.diff(bounds, axis=1), 0.0)

    def _state(self) -> EstimatorState:
        arrays = {
            "above": self.above_,
            "trust": self.trust_,
            "share": self.share_,
        }
        for place, (knots, levels) in enumerate(self.curves_):
            arrays |= {f"knots.{place}": knots, f"levels.{place}": levels}
        return EstimatorState({"curves": len(self.curves_)}, arrays)

    def _restore(self, state: EstimatorState) -> None:
        self.above_ = state.arrays["above"]
        self.trust_ = state.arrays["trust"]
        self.share_ = state.arrays["share"]
        curves = []
        for place in range(state.facts["curves"]):
            curves.append((state.arrays[f"knots.{place}"], state.arrays[f"levels.{place}"]))
        self.curves_ = curves


def _fit_isotonic_curves(scores: Floats, targets: Floats) -> IsotonicCurves:
    """Isotonic fits of all columns of the targets, read off at each score that occurs."""
    knots = np.unique(scores)
    if not len(knots):
        return knots, np.zeros((0, targets.shape[1]))

    fits = []
    for target in targets.T:
        fits.append(IsotonicRegression().fit(scores, target).predict(knots))

    return knots, np.stack(fits, axis=1)


def _interpolate_levels(curves: IsotonicCurves, scores: Floats, otherwise: Floats) -> Floats:
    """Interpolate levels at the scores `[row, options − 1]`; `otherwise` where undefined."""
    knots, levels = curves
    if not len(knots):
        return np.tile(otherwise, (len(scores), 1))

    read = np.stack([np.interp(scores, knots, level) for level in levels.T], axis=1)
    return np.where(np.isnan(scores)[:, None], otherwise, read)
