"""Windows of uncertain scores about θ (`losses.compute_midpoint_of_class_means`), and P(good conversation).

Windows are the paper's, and one with a guarantee; the probability is a logistic curve of NetSAT.

Sources: Biyani et al. 2024, on θ and on YieldRate; Angelopoulos, Bates, Candès, Jordan, Lei 2021,
"Learn then Test", arXiv:2110.01052, section 2; Platt 1999, "Probabilistic outputs for support
vector machines", for the curve's targets; Lin, Lin and Weng 2007, doi:10.1007/s10994-007-5018-6,
for Newton's method with backtracking.

The paper's window takes the thresholds at which the *observed* precision is P. On few labels it is
too narrow about every other time. For the guarantee each threshold is a hypothesis, "right less
often than P", and is taken only where an exact binomial test rejects it; tests go from the
strictest threshold inwards and end with the first that is not rejected, so that all of them
together have the error of one (fixed-sequence testing). Both sides share δ: on exchangeable
conversations, both precisions are at least P with probability 1 − δ or more.

What it rests on: labels of conversations that had no part in the choice of rubrics, and a precision
that doesn't rise again where it has once fallen under P on the way inwards.
`benchmarks/conformal.py` tries both by simulation.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import require_both_classes
from pollex.measures.distributions import compute_platt_targets
from pollex.selection.losses import SCORE_TIE_TOLERANCE

REQUIRED_PRECISION = 0.9
"""P of YieldRate@P: how often a score outside the window has to be right."""


@dataclass(frozen=True)
class Window:
    """The uncertainty window: scores over `lower` and at or under `upper`.

    Attributes:
        lower: At or under it, Prec− ≥ `precision` on the training scores. None: no threshold up to
            θ reaches that, and no score is confidently negative.
        upper: Over it, Prec+ ≥ `precision`. None: no score is confidently positive.
        fitted: Whether it rests on scores by rubrics that did not see the conversations; else
            nothing is said of any.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    lower: float | None
    upper: float | None
    precision: float = REQUIRED_PRECISION
    fitted: bool = True

    def certain(self, scores: Floats, probability: Floats) -> list[bool | None]:
        """Say which scores are confident: outside the window, and no toss-up; None where no window was fitted.

        Args:
            scores: `[conversation]`.
            probability: Of a thumb up `[conversation]`.
        """
        if not self.fitted:
            return [None] * len(scores)

        certain: list[bool | None] = (
            self.confident(scores) & is_probability_clear(probability)
        ).tolist()
        return certain

    def confident(self, scores: Floats) -> Bools:
        """Return a mask of the scores outside the window `[conversation]`."""
        return self.under(scores) | self.over(scores)

    def under(self, scores: Floats) -> Bools:
        """Say which scores are confidently negative: `[conversation]` to `[conversation]`."""
        scores = np.asarray(scores, float)
        if self.lower is None:
            return np.zeros(scores.shape, bool)
        return scores <= self.lower

    def over(self, scores: Floats) -> Bools:
        """Say which scores are confidently positive: `[conversation]` to `[conversation]`."""
        scores = np.asarray(scores, float)
        if self.upper is None:
            return np.zeros(scores.shape, bool)
        return scores > self.upper


MIN_DISTANCE_FROM_HALF = 0.2
"""How far a probability is from one half at least where a score may be called confident."""


def is_probability_clear(probability: Floats) -> Bools:
    """Tell which probabilities are no toss-up `[conversation]`."""
    return np.asarray(np.abs(np.asarray(probability, float) - 0.5) >= MIN_DISTANCE_FROM_HALF)


def fit_uncertainty_window(
    scores: Floats,
    positive: Bools,
    theta: float,
    precision: float = REQUIRED_PRECISION,
) -> Window:
    """Find the narrowest window with both precisions on training scores.

    Precision curves go up and down. `lower` is the highest threshold up to θ with Prec− ≥ P,
    whatever happens below it: the promise is about all scores at or under it together. `upper` is
    the lowest from θ on with Prec+ ≥ P. Each is bound to its side of θ: a confident score never
    contradicts its label, and lower ≤ upper; both are θ when θ itself keeps both promises.
    Thresholds tried are θ and half way between neighboring scores, so that rounding moves no score
    across one.

    Args:
        scores: NetSAT of the training conversations `[conversation]`.
        positive: Their labels `[conversation]`.
        theta: The label threshold, θ_c.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    # thresholds half way between scores, and θ
    levels = np.unique(np.round(scores, 9))
    thresholds = np.sort(np.append((levels[:-1] + levels[1:]) / 2, theta))
    up = np.searchsorted(np.sort(scores[positive]), thresholds, side="right")
    down = np.searchsorted(np.sort(scores[~positive]), thresholds, side="right")
    # precision of both sides at each threshold
    over = len(scores) - up - down
    over_up = positive.sum() - up
    lower = thresholds[(thresholds <= theta) & (up + down > 0) & (down >= precision * (up + down))]
    upper = thresholds[(thresholds >= theta) & (over > 0) & (over_up >= precision * over)]

    return Window(
        lower=float(lower[-1]) if len(lower) else None,
        upper=float(upper[0]) if len(upper) else None,
        precision=precision,
    )


GUARANTEE_FAILURE_RATE = 0.1
"""How often the guarantee may fail, over logs like this one."""

MAX_FORGIVEN_ERRORS = 1
"""Wrong labels that the strictest threshold may have: with none, a single odd conversation would end it at once."""

MAX_LABELS_SEARCHED = 1_000_000
"""More labels than this are as good as none: the scores are hardly over P, if at all."""


@dataclass(frozen=True)
class WindowSide:
    """One side of the window.

    Attributes:
        threshold: None where no threshold passed its test.
        confident: Calibration conversations beyond the threshold; where none passed and `needed` is
            None, beyond one that is right that often, but too few to tell.
        wrong: Those among them with the other label.
        needed: About how many labels in all it would take for a threshold; None where there is one,
            and where the scores are right less often than P however strict the threshold is.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    threshold: float | None
    confident: int
    wrong: int
    needed: int | None = None


@dataclass(frozen=True)
class GuaranteedWindow:
    """Both sides of a window with precision ≥ `precision`, with probability ≥ 1 − `delta`.

    Attributes:
        n: Calibration conversations, by rubrics that were chosen without them; those written
            without them, too, were held out.
        held_out: Held-out conversations.
        outside: Those among them outside the window.
        right: Those of these that are labeled right.
        blocks: How many blocks the held-out ones are in (see `conversations.splits`), and those
            outside.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    lower: WindowSide
    upper: WindowSide
    precision: float
    delta: float
    n: int
    held_out: int = 0
    outside: int = 0
    right: int = 0
    blocks: tuple[int, int] = (0, 0)

    @property
    def window(self) -> Window:
        """The window in the form of the plug-in window."""
        return Window(self.lower.threshold, self.upper.threshold, self.precision)


def fit_guaranteed_window(
    scores: Floats,
    positive: Bools,
    theta: float,
    precision: float = REQUIRED_PRECISION,
    delta: float = GUARANTEE_FAILURE_RATE,
) -> GuaranteedWindow:
    """Return the narrowest window around θ whose precisions hold with probability 1 − δ.

    Args:
        scores: NetSAT of conversations that the rubrics were chosen without `[conversation]`. The
            scores by other folds' rubrics, which α's cross-validation leaves, are that nearly: each
            is honest, but by rubrics of its fold's own, and the guarantee holds for the final
            rubrics as far as their scores lie alike. A calibration split would be exact, and would
            cost a third of the labels where they are fewest.
        positive: Their labels `[conversation]`.
        theta: The label threshold; neither side crosses it. It only ends the sequence of tests, and
            so may come from the same conversations.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    scores = np.round(scores, 9)
    # both sides share δ; the lower one is the upper one of negated scores
    upper = _find_guaranteed_upper_threshold(scores, ~positive, theta, precision, delta / 2)
    lower = _find_guaranteed_upper_threshold(-scores, positive, -theta, precision, delta / 2)
    if lower.threshold is not None:
        lower = replace(lower, threshold=-lower.threshold)

    return GuaranteedWindow(lower, upper, precision, delta, len(scores))


@lru_cache
def count_labels_needed_for_precision(precision: float, delta: float, wrong: int = 0) -> int:
    """Return the labels beyond a threshold needed to reject with `wrong` errors.

    29 with none at P = 0.9, δ = 0.05.
    """
    from scipy.stats import binom  # a second to import

    sizes = np.arange(wrong + 1, _has_enough_labels(precision, delta, wrong) + 1)
    return int(sizes[np.argmax(binom.cdf(wrong, sizes, 1 - precision) <= delta)])


def _has_enough_labels(precision: float, delta: float, wrong: int) -> int:
    # Hoeffding's bound, solved for a size at which the test surely rejects
    risk = 1 - precision
    return int(np.ceil(2 * (wrong + 1) / risk + 8 * np.log(1 / delta) / risk))


def _find_guaranteed_upper_threshold(
    scores: Floats,
    wrong: Bools,
    theta: float,
    precision: float,
    delta: float,
) -> WindowSide:
    """Find the upper side: the lowest threshold that passes with all stricter ones.

    Args:
        wrong: Where a positive label would be wrong `[conversation]`.
        delta: Of this side.
    """
    from scipy.stats import binom  # a second to import

    thresholds, over, errors = _count_scores_and_errors_over_thresholds(scores, wrong, theta)
    # Which thresholds are tried depends on how many scores lie over them, never on labels. That
    # takes nothing from the tests: labels of those over a threshold are drawn alike, however many
    # they are.
    tried = over >= count_labels_needed_for_precision(precision, delta, MAX_FORGIVEN_ERRORS)
    p = binom.cdf(errors, over, 1 - precision)  # of "wrong more often than 1 − P", one-sided
    passed = np.logical_and.accumulate(p[tried] <= delta)
    if not passed.any():
        # no threshold passed: how many labels it would take
        needed = _compute_labels_needed(over, errors, len(scores), precision, delta)
        if needed:
            few = 0
        else:
            few = int(over[errors <= (1 - precision) * over].max(initial=0))

        return WindowSide(None, few, 0, needed)

    at = np.flatnonzero(tried)[np.flatnonzero(passed)[-1]]
    return WindowSide(
        float(thresholds[at]),
        int(over[at]),
        int(errors[at]),
        None,
    )


def _count_scores_and_errors_over_thresholds(
    scores: Floats,
    wrong: Bools,
    theta: float,
) -> tuple[Floats, Ints, Ints]:
    """Return thresholds from the strictest to θ, scores over each, and errors, each `[threshold]`.

    Thresholds are half way between neighboring scores, so that rounding moves none across; θ itself
    comes last.
    """
    levels = np.unique(scores)
    middle = (levels[:-1] + levels[1:]) / 2
    thresholds = np.append(middle[middle > theta][::-1], theta)
    over = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    errors = len(scores[wrong]) - np.searchsorted(np.sort(scores[wrong]), thresholds, side="right")
    return thresholds, over, errors


def _compute_labels_needed(
    over: Ints,
    errors: Ints,
    n: int,
    precision: float,
    delta: float,
) -> int | None:
    """Estimate the labels with which the most promising threshold would pass.

    Shares are assumed to stay as they are. Source: the normal approximation to the size of a
    one-sided binomial test with power one half, and never less than the test without errors takes.
    """
    from scipy.stats import norm  # as above

    promising = over > 0
    # Jeffreys: never 0
    share = over[promising] / n
    # share beyond each threshold, and its rate of errors
    rate = (errors[promising] + 0.5) / (over[promising] + 1)
    # labels at which the test would reject with power one half
    gap = (1 - precision) - rate
    beyond = (norm.ppf(1 - delta) ** 2 * precision * (1 - precision)) / np.maximum(gap, 1e-12) ** 2
    labels = np.where(
        gap > 0,
        np.maximum(beyond, count_labels_needed_for_precision(precision, delta)) / share,
        np.inf,
    )
    fewest = labels.min(initial=np.inf)
    if fewest <= MAX_LABELS_SEARCHED:
        return int(np.ceil(max(fewest, n + 1)))
    return None


MAX_NEWTON_STEPS = 100
MAX_STEP_HALVINGS = 30


@dataclass(frozen=True)
class Calibration:
    """`P(positive | score) = 1 / (1 + exp(−(intercept + slope·score)))`."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    slope: float
    intercept: float

    def probability(self, scores: Floats) -> Floats:
        """Compute probabilities `[conversation]` of scores `[conversation]`."""
        return compute_logistic(self.intercept + self.slope * np.asarray(scores, float))


def fit_logistic_calibration_curve(scores: Floats, positive: Bools) -> Calibration:
    """Fit the curve by maximum likelihood with Platt's targets, which keep it finite.

    Args:
        scores: NetSAT of training conversations, by rubrics chosen without them `[conversation]`.
        positive: Their labels `[conversation]`.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    # Newton's method on standardized scores
    targets = compute_platt_targets(positive.astype(np.int64), 2)[:, 1]
    mean = float(np.mean(scores))
    deviation = float(np.std(scores))
    if deviation <= SCORE_TIE_TOLERANCE:
        rate = float(targets.mean())
        return Calibration(0.0, float(np.log(rate / (1 - rate))))

    slope, intercept = _fit_by_newton((scores - mean) / deviation, targets)
    return Calibration(slope / deviation, intercept - slope * mean / deviation)


def _fit_by_newton(z: Floats, targets: Floats) -> tuple[float, float]:
    design = np.stack([z, np.ones_like(z)], axis=1)
    weights: Floats = np.zeros(2)
    for _ in range(MAX_NEWTON_STEPS):
        p = compute_logistic(design @ weights)
        gradient = design.T @ (p - targets)
        if np.abs(gradient).max() <= SCORE_TIE_TOLERANCE * len(z):
            break
        # A ridge far below any real curvature keeps the step finite where all probabilities are at
        # 0 or 1.
        hessian = (design.T * (p * (1 - p))) @ design + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient).astype(float)
        weights = _backtrack_newton_step(design, targets, weights, step)

    return float(weights[0]), float(weights[1])


def _backtrack_newton_step(
    design: Floats,
    targets: Floats,
    weights: Floats,
    step: Floats,
) -> Floats:
    # the step is halved until the loss falls
    start = _compute_cross_entropy(design @ weights, targets)
    sizes = 0.5 ** np.arange(MAX_STEP_HALVINGS)
    tried = (weights - size * step for size in sizes)

    return next(
        (new for new in tried if _compute_cross_entropy(design @ new, targets) < start),
        weights,
    )


def _compute_cross_entropy(logits: Floats, targets: Floats) -> float:
    return float(np.sum(np.logaddexp(0.0, logits) - targets * logits))


def compute_logistic(logits: Floats) -> Floats:
    """Convert log-odds to probabilities, without importing SciPy."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))
