"""A weighted sum of all answers that counts common information once, with a cumulative link.

NetSAT adds up all answers alike. Were they independent given the label, and the classes as far
apart in each answer as its spread, that sum would be Fisher's discriminant. With the answers'
correlations R the discriminant of the same differences is

    w = (ρ·I + (1 − ρ)·R)⁻¹ s          z_k = (e_k − m_k) / s_k          score = Σ_k w_k·z_k

e_k the signed expected answer to question k, m_k and s_k its mean and standard deviation. No label
goes into w, so it can't be overfitted to labels, unlike the choice of the rubrics. ρ = 1 is NetSAT
itself. What labels say about single questions enters as deviations d, shrunk strongly:

    P(answer ≤ k | x, a) = σ(c_k − b·score − Σ_k d_k·z_k − u_a)

Sources: Fisher 1936, doi:10.1111/j.1469-1809.1936.tb02137.x; Friedman 1989, "Regularized
Discriminant Analysis", doi:10.1080/01621459.1989.10478752, for the shrinkage towards independence;
Platt 1999, "Probabilistic outputs for support vector machines", for the targets, here of any number
of options.
"""

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
from pollex.calibration.features import MAX_STANDARD_SCORE, compute_column_means_and_deviations
from pollex.calibration.judgments import Judgments
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import compute_platt_targets

SLOPE_PRIOR_PRECISION = 4.0
"""Of the prior on b, whose score is standardized: a normal of deviation .5. The questions are chosen on the labels, so
the slope that fits these is too steep for new ones. Source: Gelman et al. 2008,
doi:10.1214/08-AOAS191."""

CUTS_PRIOR_PRECISION = 0.01
MIN_SCORE_DEVIATION = 1e-9

LINK_TERM_NAMES = tuple(LinkTerms.__dataclass_fields__)


class WeightedSum(JudgedEstimator):
    """A cumulative link on a weighted sum of answers, with shrunk deviations and judge intercepts.

    Args:
        signs: +1 where a larger answer speaks for a larger main answer, −1 where against, 0 for a
            question to leave out, one a question asked; None: all +1. Questions that are not
            ordinal are left out.
        independence: ρ, from 0 (correlations as they are in the rows) to 1 (none: the plain sum); 0
            needs more rows than questions.
        deviations: Precision of the prior on d; None leaves them out.
        intercepts: Precision of the prior on u; None leaves them out.
    """

    title: ClassVar[str] = "weighted sum"

    def __init__(
        self,
        signs: Sequence[float] | None = None,
        independence: float = 0.5,
        deviations: float | None = None,
        intercepts: float | None = 4.0,
    ) -> None:
        self.signs = signs
        self.independence = independence
        self.deviations = deviations
        self.intercepts = intercepts

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (cross-validates nothing)
        self._require_order("a cumulative link needs an order")
        question_count = len(self.questionnaire_.asked)
        if self.signs is not None and len(self.signs) != question_count:
            raise WrongUse(
                f"{len(self.signs)} signs for {question_count} questions asked",
                hint="give one sign a question",
            )

        # weights from the answers alone, no label; the score gets deviation 1
        signed = self._signed(X)
        self.mean_, self.spread_ = compute_column_means_and_deviations(signed)
        z = self._standard(signed)
        self.weights_: Floats = compute_question_weights(z, self.spread_, self.independence)
        deviation = float((z @ self.weights_).std())
        if deviation > MIN_SCORE_DEVIATION:
            self.weights_ = self.weights_ / deviation
        else:
            self.weights_ = np.zeros_like(self.weights_)

        # the labels say where the cuts are, and how steep the curve is
        labels = y.of_question(self.questionnaire_.index())
        self.terms_: LinkTerms = self._terms(self._inputs(z)[labels.row], labels)

    def _signed(self, X: Floats) -> Floats:
        """Return signed expected answers `[row, question asked]`; NaN if missing, 0 if left out."""
        if self.signs is None:
            signs = np.ones(len(self.questionnaire_.asked))
        else:
            signs = np.array(self.signs, float)

        # questions without an order have no expected answer that could be larger
        signs = signs * [scale.ordinal for scale in self.questionnaire_.asked]
        expected = self.questionnaire_.expected(X)
        return np.where(signs == 0, 0.0, expected * signs)

    def _standard(self, signed: Floats) -> Floats:
        """Standardize to z; missing and constant answers become the mean, 0."""
        varied = self.spread_ > MIN_SCORE_DEVIATION
        z = np.divide(
            signed - self.mean_,
            self.spread_,
            out=np.zeros_like(signed),
            where=varied,
        )
        return np.nan_to_num(z)

    def _inputs(self, z: Floats) -> Floats:
        score = (z @ self.weights_)[:, None]
        if self.deviations is None:
            return score
        return np.concatenate([score, np.clip(z, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)], axis=1)

    def _terms(self, F: Floats, y: Judgments) -> LinkTerms:
        # Platt's targets: each judgment counts a little for every option, with these weights
        options = len(self.questionnaire_.scale().values)
        targets = compute_platt_targets(y.answer, options)
        counts = np.bincount(y.answer, minlength=options) + 1.0
        center = make_parameters_equal_for_judges(
            counts / counts.sum(),
            F.shape[1],
            len(self.judges_),
        )
        rows, answers = (indices.ravel() for indices in np.indices(targets.shape))

        return fit_cumulative_link_parameters(
            F[rows],
            y.judge[rows],
            answers,
            center,
            self._precision(center),
            targets.ravel(),
        )

    def _precision(self, shape: LinkTerms) -> LinkTerms:
        # judges have intercepts, and no scales or slopes of their own
        deviations = 1.0 if self.deviations is None else self.deviations
        precision = make_prior_precisions(
            shape,
            (CUTS_PRIOR_PRECISION, CUTS_PRIOR_PRECISION, deviations, self.intercepts, None, None),
        )
        precision.slopes[0] = SLOPE_PRIOR_PRECISION

        return precision

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        self._require_main(question)
        return predict_answer_distributions(
            self.terms_,
            self._inputs(self._standard(self._signed(X))),
            judges,
        )

    def _state(self) -> EstimatorState:
        learned = {
            "mean": self.mean_,
            "spread": self.spread_,
            "weights": self.weights_,
        }
        return EstimatorState(
            {},
            learned | {part: getattr(self.terms_, part) for part in LINK_TERM_NAMES},
        )

    def _restore(self, state: EstimatorState) -> None:
        arrays = state.arrays
        self.mean_ = arrays["mean"]
        self.spread_ = arrays["spread"]
        self.weights_ = arrays["weights"]
        self.terms_ = LinkTerms(*(arrays[part] for part in LINK_TERM_NAMES))


def compute_question_weights(z: Floats, spread: Floats, independence: float) -> Floats:
    """Compute w `[question]` of standardized rows `[row, question]`."""
    correlation = z.T @ z / len(z)
    np.fill_diagonal(correlation, 1.0)
    mixed = independence * np.eye(len(spread)) + (1 - independence) * correlation
    return np.asarray(np.linalg.lstsq(mixed, spread)[0], dtype=np.float64)
