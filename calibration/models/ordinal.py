"""Ordinal mixed effects: a cumulative link on all expected scores, with judge effects."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pollex.calibration.cumulative_link import (
    LinkTerms,
    fit_cumulative_link_parameters,
    make_parameters_equal_for_judges,
    make_prior_precisions,
    predict_answer_distributions,
)
from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.features import Inputs, fit_model_inputs, restore_model_inputs
from pollex.calibration.judgments import Judgments
from pollex.measures.arrays import Floats, Ints

CUT_SMOOTHING_JUDGMENTS = 1.0
"""So many judgments more, spread evenly over the options, stand behind the cuts that are the priors' means."""

LINK_TERM_NAMES = tuple(LinkTerms.__dataclass_fields__)


class OrdinalMixedEffects(JudgedEstimator):
    """Cumulative link with a judge's intercept, scale and slopes, each shrunk or left out.

    Args:
        shared: Precision of the prior on the shared slopes; inputs are standardized.
        intercepts: Of that on the judges' intercepts; None leaves them out.
        scales: Of that on the logarithms of their scales; likewise.
        slopes: Of that on their own slopes; likewise.
        cuts: Of that on the cuts, around those of the answers' shares.
    """

    title: ClassVar[str] = "ordinal mixed effects"

    def __init__(
        self,
        shared: float = 30.0,
        intercepts: float | None = 2.0,
        scales: float | None = 10.0,
        slopes: float | None = 50.0,
        cuts: float = 0.1,
    ) -> None:
        self.shared = shared
        self.intercepts = intercepts
        self.scales = scales
        self.slopes = slopes
        self.cuts = cuts

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (cross-validates nothing)
        self._require_order("a cumulative link needs an order")
        self.inputs_: Inputs = fit_model_inputs(
            X[np.unique(y.row)],
            self.questionnaire_,
            self._only(),
        )
        # the priors of the cuts are at the smoothed shares of the answers
        labels = y.of_question(self.questionnaire_.index())
        options = len(self.questionnaire_.scale().values)
        shares = np.bincount(labels.answer, minlength=options) + CUT_SMOOTHING_JUDGMENTS / options
        center = make_parameters_equal_for_judges(
            shares / shares.sum(),
            self.inputs_.width,
            len(self.judges_),
        )
        precision = make_prior_precisions(
            center,
            (self.cuts, self.cuts, self.shared, self.intercepts, self.scales, self.slopes),
        )
        self.terms_: LinkTerms = fit_cumulative_link_parameters(
            self.inputs_.of(X).rows[labels.row],
            labels.judge,
            labels.answer,
            center,
            precision,
        )

    def _only(self) -> Sequence[str] | None:
        """Return the ids of the questions that are looked at; None: all that are asked."""
        return None

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        self._require_main(question)
        terms = self.terms_
        filled = self.inputs_.of(X)
        judge_slopes: Floats | float = 0.0
        if len(self.judges_):
            judge_slopes = np.where(
                (judges >= 0)[:, None],
                terms.judge_slopes[judges],
                0.0,
            )

        # gaps were filled with what is expected: doubt about it widens the distribution
        slopes = terms.slopes + judge_slopes + np.zeros_like(filled.rows)
        return predict_answer_distributions(terms, filled.rows, judges, filled.variance(slopes))

    def _state(self) -> EstimatorState:
        main = self.questionnaire_.index()
        return EstimatorState(
            {},
            self.inputs_.arrays()
            | {f"{main}.{part}": getattr(self.terms_, part) for part in LINK_TERM_NAMES},
        )

    def _restore(self, state: EstimatorState) -> None:
        self.inputs_ = restore_model_inputs(self.questionnaire_, state.arrays)
        main = self.questionnaire_.index()
        self.terms_ = LinkTerms(*(state.arrays[f"{main}.{part}"] for part in LINK_TERM_NAMES))
