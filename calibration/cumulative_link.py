"""Cumulative link with judges' effects, as in P(answer ≤ k | text, judge).

Source: McCullagh 1980, "Regression models for ordinal data",
    doi:10.1111/j.2517-6161.1980.tb01109.x, eq. 2.1 and 6.1
(the scale); Hedeker & Gibbons 1994, doi:10.2307/2533433 (random intercepts and slopes). Terms are
found at the mode of the posterior under independent normal priors. With two options it is a
mixed-effects logistic regression.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_expit

from pollex.measures.arrays import Floats, Ints

MIN_CUT_GAP = 1e-9
"""In training, neighboring bounds are kept so far apart that no answer has probability 0."""

LIKELIHOOD_CURVATURE_PER_JUDGMENT = 0.2
"""Of minus the log-likelihood of one judgment by its location, about; of a yes or no at even odds it is 1/4."""

LBFGS_OPTIONS = {
    "maxiter": 1000,
    "maxcor": 20,
    "ftol": 1e-10,
    "gtol": 1e-5,
}

MIN_ANSWER_PROBABILITY = 1e-9
"""No answer is given a smaller probability: far outside of what was seen in training nothing is that sure."""


@dataclass(frozen=True, eq=False)
class LinkTerms:
    """Parameters of a cumulative link, or prior precisions in the same shape.

    Attributes:
        start: The first cut `[1]`.
        gaps: Logarithms of the distances between neighboring cuts `[options − 2]`.
        slopes: β, shared `[input]`.
        intercepts: u, `[judge]`.
        scales: s, logarithms `[judge]`.
        judge_slopes: v, `[judge, input]`.
    """

    start: Floats
    gaps: Floats
    slopes: Floats
    intercepts: Floats
    scales: Floats
    judge_slopes: Floats

    @property
    def cuts(self) -> Floats:
        """c, ascending `[options − 1]`."""
        return np.cumsum(np.concatenate([self.start, np.exp(self.gaps)]))

    def packed(self) -> Floats:
        """Return all in one row `[term]`."""
        return np.concatenate([part.ravel() for part in self._parts()])

    def like(self, values: Floats) -> Self:
        """Make terms of the same shapes from one row `[term]`."""
        # the row is cut where one array ends and the next begins
        parts = self._parts()
        ends = np.cumsum([part.size for part in parts])[:-1]
        pieces = np.split(values, ends)

        return type(self)(
            *(piece.reshape(part.shape) for piece, part in zip(pieces, parts, strict=True))
        )

    def _parts(self) -> tuple[Floats, ...]:
        return self.start, self.gaps, self.slopes, self.intercepts, self.scales, self.judge_slopes


def make_parameters_equal_for_judges(shares: Floats, inputs: int, judges: int) -> LinkTerms:
    """Make terms that give every judge the same distribution.

    Args:
        shares: Of each answer, all above 0 `[option]`; they sum to 1.
    """
    # the cuts at which a logistic curve gives these shares
    below = np.cumsum(shares)[:-1]
    cuts = np.log(below) - np.log1p(-below)
    return LinkTerms(
        cuts[:1],
        np.log(np.diff(cuts)),
        np.zeros(inputs),
        np.zeros(judges),
        np.zeros(judges),
        np.zeros((judges, inputs)),
    )


def make_prior_precisions(shape: LinkTerms, strengths: Sequence[float | None]) -> LinkTerms:
    """Make precisions in the shape of the terms; None fixes a kind of terms."""
    arrays = []
    for part, strength in zip(shape._parts(), strengths, strict=True):
        # an infinite precision holds a term at the mean of its prior
        arrays.append(np.full(part.shape, np.inf if strength is None else strength))
    return type(shape)(*arrays)


def compute_location_and_scale_of_rows(
    terms: LinkTerms, F: Floats, judges: Ints
) -> tuple[Floats, Floats]:
    """Compute location and scale of each row, `[row]`; judge −1 has no own terms.

    Args:
        F: Inputs `[row, input]`.
        judges: Codes `[row]`.
    """
    # location and scale `[row]`: shared, then moved and stretched by each known judge's own terms
    has_terms = judges >= 0
    place = F @ terms.slopes
    scale = np.ones(len(F))
    if has_terms.any():
        codes = judges[has_terms]
        place[has_terms] += terms.intercepts[codes] + (
            F[has_terms] * terms.judge_slopes[codes]
        ).sum(axis=1)
        scale[has_terms] = np.exp(terms.scales[codes])

    return place, scale


def predict_answer_distributions(
    terms: LinkTerms,
    F: Floats,
    judges: Ints,
    spread: Floats | None = None,
) -> Floats:
    """Return probability of each answer `[row, option]`.

    Args:
        F: Inputs `[row, input]`.
        judges: Codes `[row]`.
        spread: Variance of each row's location where inputs are not known for sure `[row]`. The
            logistic curve is averaged over it by MacKay's approximation, σ(m / √(1 + π·v/8)) (1992,
            doi:10.1162/neco.1992.4.5.720).
    """
    place, scale = compute_location_and_scale_of_rows(terms, F, judges)
    # doubt about the location flattens the curve
    if spread is not None:
        scale = scale / np.sqrt(1 + np.pi / 8 * scale**2 * spread)

    below = expit(scale[:, None] * (terms.cuts[None, :] - place[:, None]))
    return convert_cumulative_to_option_probabilities(below)


def convert_cumulative_to_option_probabilities(below: Floats) -> Floats:
    """Return the probability of each option `[row, option]` from that of all below each bound `[row, option − 1]`."""
    # nothing lies below the first option, and everything below a bound after the last
    ends = np.zeros((len(below), 1)), below, np.ones((len(below), 1))
    proba = np.maximum(np.diff(np.concatenate(ends, axis=1), axis=1), MIN_ANSWER_PROBABILITY)
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


def fit_cumulative_link_parameters(
    F: Floats,
    judges: Ints,
    answers: Ints,
    center: LinkTerms,
    precision: LinkTerms,
    weights: Floats | None = None,
) -> LinkTerms:
    """Fit the terms at the mode of the posterior.

    Args:
        F: Inputs `[judgment, input]`.
        judges: Codes `[judgment]`, −1 for nobody known.
        answers: Places of the answers `[judgment]`.
        center: Means of the normal priors.
        precision: Their precisions, one over the variance; infinite: the term stays at its mean.
        weights: Of the judgments `[judgment]`; None: 1 each.
    """
    # only terms with a finite precision are searched for; the others stay at their means
    held = precision.packed()
    middle = center.packed()
    free = np.isfinite(held)
    task = _NegativeLogLikelihood(
        F,
        judges,
        answers,
        np.ones(len(F)) if weights is None else weights,
        center,
    )

    def loss(values: Floats) -> tuple[float, Floats]:
        full = middle.copy()
        full[free] = values
        away = values - middle[free]
        value, slope = task.loss(full)
        return value + 0.5 * float(held[free] @ away**2), slope[free] + held[free] * away

    # In units of each term's own curvature the search needs a fraction of the steps.
    unit = 1 / np.sqrt(task.curvature()[free] + held[free])

    def scaled(values: Floats) -> tuple[float, Floats]:
        value, slope = loss(values * unit)
        return value, slope * unit

    first = middle[free] / unit
    optimum = minimize(
        scaled,
        first,
        jac=True,
        method="L-BFGS-B",
        options=LBFGS_OPTIONS,
    )
    full = middle.copy()
    full[free] = optimum.x * unit

    return center.like(full)


class _NegativeLogLikelihood:
    """Minus the log-likelihood of all judgments, with its gradient by hand."""

    def __init__(
        self,
        F: Floats,
        judges: Ints,
        answers: Ints,
        weights: Floats,
        shape: LinkTerms,
    ) -> None:
        self.F = F
        self.judges = judges
        self.answers = answers
        self.weights = weights
        self.shape = shape
        by_judges = np.flatnonzero(judges >= 0)
        # Sparse: of thousands of users with a thumb or two each, judge by judgment is gigabytes of
        # zeros.
        self.who = csr_array(
            (np.ones(len(by_judges)), (judges[by_judges], by_judges)),
            shape=(len(shape.intercepts), len(F)),
        )
        # places of the cuts above and below each answer; the outermost options have one cut only
        options = len(shape.gaps) + 2
        self.upper = np.minimum(answers, options - 2)
        self.lower = np.maximum(answers - 1, 0)
        self.top = answers == options - 1
        self.bottom = answers == 0

    def curvature(self) -> Floats:
        """About the second derivative of the loss by each term `[term]`, never 0."""
        squares = self.F**2 * self.weights[:, None]
        weight_of_judge = self.who @ self.weights
        total = float(self.weights.sum())
        # in the order of the terms: first cut, gaps, slopes, intercepts, scales, judges' slopes
        by_term = np.concatenate(
            [
                [total],
                np.full(len(self.shape.gaps), total),
                squares.sum(axis=0),
                weight_of_judge,
                weight_of_judge,
                (self.who @ squares).ravel(),
            ]
        )
        return LIKELIHOOD_CURVATURE_PER_JUDGMENT * by_term + 1e-3

    def loss(self, values: Floats) -> tuple[float, Floats]:
        terms = self.shape.like(values)
        place, scale = compute_location_and_scale_of_rows(terms, self.F, self.judges)
        # bounds of each answer on the logistic scale `[judgment]`
        cuts = terms.cuts
        high = np.where(self.top, np.inf, scale * (cuts[self.upper] - place))
        low = np.where(self.bottom, -np.inf, scale * (cuts[self.lower] - place))
        gap = np.maximum(high - low, MIN_CUT_GAP)
        # log(σ(high) − σ(low)) without the difference of two numbers near 1
        value = log_expit(high) + log_expit(-low) + np.log(-np.expm1(-gap))
        # derivatives of the log-likelihood by the upper and by the lower bound `[judgment]`
        pull = 1 / np.expm1(np.minimum(gap, 700.0))
        on_high = np.where(self.top, 0.0, self.weights * (expit(-high) + pull))
        on_low = np.where(self.bottom, 0.0, -self.weights * (expit(low) + pull))

        return -float(self.weights @ value), -self._gradient(
            terms, on_high, on_low, high, low, scale
        )

    def _gradient(
        self,
        terms: LinkTerms,
        on_high: Floats,
        on_low: Floats,
        high: Floats,
        low: Floats,
        scale: Floats,
    ) -> Floats:
        """Compute the gradient of the log-likelihood by the terms, from that by bounds."""
        # each cut bounds the option below it from above, and that above it from below
        by_cut = np.bincount(
            self.upper,
            scale * on_high,
            len(terms.gaps) + 1,
        )
        by_cut = by_cut + np.bincount(self.lower, scale * on_low, len(terms.gaps) + 1)
        from_cut = np.cumsum(by_cut[::-1])[::-1]
        by_place = -scale * (on_high + on_low)
        # infinite bounds don't move with the scale
        upper_by_scale = on_high * np.where(self.top, 0.0, high)
        lower_by_scale = on_low * np.where(self.bottom, 0.0, low)
        by_scale = upper_by_scale + lower_by_scale

        return np.concatenate(
            [
                from_cut[:1],
                from_cut[1:] * np.exp(terms.gaps),
                by_place @ self.F,
                self.who @ by_place,
                self.who @ by_scale,
                (self.who @ (by_place[:, None] * self.F)).ravel(),
            ]
        )
