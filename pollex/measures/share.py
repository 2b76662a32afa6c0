"""Share of good conversations over all, from the few that have labels; differences between two samples.

Three ways in which labels come, never mixed: asked at random, given voluntarily, or both.

Sources: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, for PPI++ (labels at random); Zrnic
and Candès 2023, arXiv:2309.16598, for probabilities by models that have not seen the conversation;
Robins, Rotnitzky and Zhao 1994, doi:10.1080/01621459.1994.10476818, for the doubly robust estimate;
Tan 2006, doi:10.1198/016214506000000023, for bounds by an assumed factor between the odds of
voting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit
from scipy.stats import false_discovery_control, norm, t

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import compute_wilson_bounds
from pollex.measures.intervals import (
    Figure,
    Measure,
    WeightedStatistic,
    divide_or_nan,
    estimate_figures_on_same_resamples,
)

CONFIDENCE_LEVEL = 0.95
MIN_LABELS_FOR_SHARE_ESTIMATE = 20
"""Labels that an estimate takes."""

MIN_LABEL_COUNT_FACTOR_GAINED_BY_SCORES = 1.02
"""Below this gain in labels, scores add nothing, and the classical interval is given."""

MIN_VOTING_PROBABILITY = 0.002
"""Propensities below are raised to this, and counted: one vote would stand for over 500 conversations."""

ASSUMED_VOTING_ODDS_RATIOS = (1.5, 2.0, 3.0)
"""Assumed factors between the odds of voting of good and of bad conversations."""

NORMAL_QUANTILE_OF_ONE_SIDED_BOUND = 1.645
"""Standard errors that are added on each side of bounds."""


@dataclass(frozen=True)
class Share:
    """A share with its interval.

    Attributes:
        value: The estimate, 0 … 1.
        low, high: Ends of the 95 % interval.
        se: Standard error.
        n: Labels behind it.
        method: How it was estimated, in the words of the output.
        gain: What a label is worth here in labels without scores; 1 where scores add nothing.
        correlation: Between label and probability; None where nothing was correlated.
        note: What the reader has to know; may be empty.
    """

    value: float
    low: float
    high: float
    se: float
    n: int
    method: str
    gain: float = 1.0
    correlation: float | None = None
    note: str = ""


@dataclass(frozen=True)
class ShareBounds:
    """Lowest and highest share that an assumed factor allows, sampling error included."""

    factor: float
    low: float
    high: float


@dataclass(frozen=True)
class VoteDependence:
    """Test whether votes depend on satisfaction beyond what conversations show.

    Attributes:
        difference: Adjusted share of voters minus the share at random.
        p: Two-sided p-value.
        power: Chance of p < .05 where bad conversations vote twice as often.
    """

    difference: float
    p: float
    power: float


@dataclass(frozen=True)
class LabeledSample:
    """One way of drawing labels: labels at random, and what is known of the rest.

    Attributes:
        good: Label of each labeled conversation; ½ for neither `[n]`.
        probability: Probability of each, by a model that has not seen its label `[n]`.
        rest: Probabilities of the conversations without a label `[N]`.
        user: Number of each labeled conversation's user `[n]`; None: each is alone.
        user_of_rest: The same for the rest `[N]`.
    """

    good: Bools | Floats
    probability: Floats
    rest: Floats
    user: Ints | None = None
    user_of_rest: Ints | None = None


def estimate_wilson_share(good: Bools | Floats, method: str) -> Share:
    """Estimate a share from its labels alone, with Wilson's interval."""
    p = float(np.mean(good))
    n = len(good)
    low, high = compute_wilson_bounds(p, n)

    return Share(
        p,
        float(low),
        float(high),
        float(np.sqrt(p * (1 - p) / n)),
        n,
        method,
    )


def estimate_share_from_random_labels(labeled: LabeledSample) -> Share:
    """Estimate the share of all conversations from labels asked at random (PPI++).

    θ = ȳ + λ (f̄_N − f̄_n), λ = clip(cov(y, f) / ((1 + n/N) var f), 0, 1). Standard errors are of
    users: what one user adds counts once.
    """
    # the estimate with scores, and what labels alone would give
    weight = _choose_score_weight_of_least_variance([labeled])
    value, influence = _compute_influence_of_labels(labeled, weight)
    classical = estimate_wilson_share(labeled.good, "labels alone")
    _, alone = _compute_influence_of_labels(labeled, 0.0)
    gain = float(alone @ alone) / max(float(influence @ influence), 1e-12)
    correlation = _correlate_labels_with_probabilities(labeled.good, labeled.probability)
    # scores that hardly narrow the interval only make it harder to explain
    if gain < MIN_LABEL_COUNT_FACTOR_GAINED_BY_SCORES and labeled.user is None:
        note = "scores tell too little of the labels to narrow the interval"
        return replace(
            classical,
            method="labels at random, alone",
            correlation=correlation,
            note=note,
        )

    se = _compute_standard_error(influence)
    low, high = _compute_interval_bounds(value, se, len(influence))
    return Share(
        value,
        low,
        high,
        se,
        len(labeled.good),
        "labels at random, with scores",
        gain,
        correlation,
    )


def estimate_share_difference_from_random_labels(a: LabeledSample, b: LabeledSample) -> Share:
    """Estimate how much larger the share of good conversations is in `b`.

    PPI++ on each side, with one λ for both.
    """
    # both sides with one λ; their errors are independent
    weight = _choose_score_weight_of_least_variance([a, b])
    (value_a, part_a), (value_b, part_b) = (
        _compute_influence_of_labels(side, weight) for side in (a, b)
    )
    se = float(np.hypot(_compute_standard_error(part_a), _compute_standard_error(part_b)))
    alone = float(
        np.hypot(
            _compute_standard_error(_compute_influence_of_labels(a, 0.0)[1]),
            _compute_standard_error(_compute_influence_of_labels(b, 0.0)[1]),
        )
    )
    value = value_b - value_a
    half = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, len(part_a) + len(part_b) - 2)) * se
    n = len(a.good) + len(b.good)

    return Share(
        value,
        value - half,
        value + half,
        se,
        n,
        "labels at random, with scores",
        (alone / se) ** 2 if se else 1.0,
    )


def estimate_share_from_voluntary_votes(
    voted: Bools,
    good: Bools,
    outcome: Floats,
    propensity: Floats,
) -> Share:
    """Estimate the share of all from voluntary votes (doubly robust).

    Votes are assumed to depend on the conversation alone.

    Args:
        voted: Whether each conversation has a vote `[N]`.
        good: Its vote; any value where there is none `[N]`.
        outcome: Probability of a good vote, by a model that has not seen the conversation `[N]`.
        propensity: Probability of a vote, by a model that has not seen the conversation `[N]`.
    """
    influence, trimmed = _estimate_doubly_robust(voted, good, outcome, propensity)
    value = float(np.clip(influence.mean(), 0.0, 1.0))
    se = float(influence.std(ddof=1) / np.sqrt(len(influence)))
    low, high = _compute_interval_bounds(value, se, int(voted.sum()))
    note = ""
    if trimmed:
        note = f"{trimmed} propensities under {MIN_VOTING_PROBABILITY} were raised to it"

    return Share(
        value,
        low,
        high,
        se,
        int(voted.sum()),
        "of all, if votes depend on the conversation alone",
        note=note,
    )


def bound_share_for_voting_odds(
    voted: Bools,
    good: Bools,
    outcome: Floats,
    propensity: Floats,
    factors: Sequence[float] = ASSUMED_VOTING_ODDS_RATIOS,
) -> list[ShareBounds]:
    """Bound the share if good and bad conversations differ in their odds of voting.

    For factor Γ: the mean of σ(logit m(x) ± ln Γ) with the doubly robust residual, ± 1.645 standard
    errors.
    """
    # the doubly robust residual stays; the model's odds move by the factor to either side
    influence, _ = _estimate_doubly_robust(voted, good, outcome, propensity)
    residual = influence - outcome
    odds = logit(np.clip(outcome, 1e-6, 1 - 1e-6))
    bounds = []
    for factor in factors:
        ends = []
        for sign in (-1.0, 1.0):
            moved = expit(odds + sign * np.log(factor)) + residual
            ends.append(
                moved.mean()
                + sign
                * NORMAL_QUANTILE_OF_ONE_SIDED_BOUND
                * moved.std(ddof=1)
                / np.sqrt(len(moved))
            )
        bounds.append(
            ShareBounds(
                factor,
                max(0.0, float(ends[0])),
                min(1.0, float(ends[1])),
            )
        )

    return bounds


def check_vote_dependence_on_satisfaction(
    at_random: Share,
    adjusted: Share,
    outcome: Floats,
) -> VoteDependence:
    """Test whether voters differ from those asked at random by more than their conversations show."""
    # how far voters differ, and how far they would at odds of 2
    se = float(np.hypot(at_random.se, adjusted.se))
    difference = adjusted.value - at_random.value
    odds = logit(np.clip(outcome, 1e-6, 1 - 1e-6))
    shift = float(np.abs(expit(odds - np.log(2.0)) - outcome).mean())
    if se:
        p = float(2 * norm.sf(abs(difference) / se))
    else:
        p = 1.0

    reach = float(norm.ppf(0.975))
    if se:
        power = float(norm.cdf(shift / se - reach) + norm.cdf(-shift / se - reach))
    else:
        power = 0.0

    return VoteDependence(difference, p, power)


def compute_interval_half_width_of_random_labels(n: int, share: float) -> float:
    """Half the 95 % interval that `n` labels at random will give."""
    return float(norm.ppf(0.975)) * float(np.sqrt(share * (1 - share) / n))


def estimate_share_from_probability_sums(
    total: float,
    squares: float,
    n: int,
    error: float,
) -> Figure:
    """Estimate the share of good conversations from probabilities alone: their mean.

    Its interval has the sampling of these conversations and the calibration's own error, whatever
    their number.

    Args:
        total: Sum of the probabilities of `n` conversations.
        squares: Sum of their squares.
        error: Standard error of the probabilities' mean, by the labels that they were calibrated
            on.
    """
    if not n:
        return Figure(None, undefined="no conversation has a probability")

    mean = total / n
    sampling = max(squares / n - mean**2, 0.0) / n
    half = float(norm.ppf((1 + CONFIDENCE_LEVEL) / 2)) * float(np.sqrt(sampling + error**2))
    return Figure(mean, max(0.0, mean - half), min(1.0, mean + half), n)


def estimate_share_from_probabilities(probability: Floats, error: float) -> Figure:
    """Estimate the share of good conversations from all probabilities; see `estimate_share_from_probability_sums`."""
    return estimate_share_from_probability_sums(
        float(probability.sum()),
        float(probability @ probability),
        len(probability),
        error,
    )


def count_labels_for_difference(
    difference: float,
    share: float,
    correlation: float = 0.0,
    *,
    reserve: float = 1.05,
) -> int:
    """Compute the labels for each side that detect a difference of shares with a power of .8.

    Includes a reserve of 5 %.
    """
    # spread of both shares, and how far a difference has to reach for a power of .8
    other = min(max(share + difference, 0.0), 1.0)
    spread = share * (1 - share) + other * (1 - other)
    reach = float(norm.ppf(0.975) + norm.ppf(0.8))
    return int(np.ceil(reserve * spread * (1 - correlation**2) * (reach / difference) ** 2))


def _choose_score_weight_of_least_variance(sides: Sequence[LabeledSample]) -> float:
    # λ: covariance of label and score over the score's variance, of all sides together
    covariance = spread = 0.0
    for side in sides:
        n = len(side.good)
        rest = max(len(side.rest), 1)
        centered = side.probability - side.probability.mean()
        covariance += float(centered @ side.good) / n
        everything = np.concatenate([side.probability, side.rest])
        spread += (1 + n / rest) * float(everything.var())

    if spread > 0:
        return float(np.clip(covariance / spread, 0.0, 1.0))
    return 0.0


def _compute_influence_of_labels(side: LabeledSample, weight: float) -> tuple[float, Floats]:
    weight = weight if len(side.rest) else 0.0
    # the labels less what scores already say of them `[n]`
    residual = side.good - weight * side.probability
    value = float(residual.mean() + (weight * side.rest.mean() if weight else 0.0))
    of_labels = (residual - residual.mean()) / len(residual)
    of_rest = np.zeros(len(side.rest))
    if weight:
        of_rest = weight * (side.rest - side.rest.mean()) / len(side.rest)

    # without users, the rest is one term: only its size counts
    if side.user is None or side.user_of_rest is None:
        tail = np.sqrt(of_rest @ of_rest) if weight else 0.0
        return value, np.append(of_labels, tail) if tail else of_labels

    # what one user adds counts once
    users = np.concatenate([side.user, side.user_of_rest])
    numbers = np.unique(users, return_inverse=True)[1]
    by_user: Floats = np.bincount(numbers, np.concatenate([of_labels, of_rest])).astype(float)
    return value, by_user


def _compute_standard_error(influence: Floats) -> float:
    units = max(len(influence), 2)
    return float(np.sqrt(influence @ influence * units / (units - 1)))


def _compute_interval_bounds(value: float, se: float, units: int) -> tuple[float, float]:
    half = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, max(units - 1, 1))) * se
    return max(0.0, value - half), min(1.0, value + half)


def _correlate_labels_with_probabilities(good: Bools | Floats, probability: Floats) -> float:
    if np.ptp(probability) == 0 or np.ptp(good.astype(float)) == 0:
        return 0.0
    return float(np.corrcoef(good, probability)[0, 1])


def _estimate_doubly_robust(
    voted: Bools,
    good: Bools,
    outcome: Floats,
    propensity: Floats,
) -> tuple[Floats, int]:
    # rare voters stand for many: weights by propensity, that sum to all conversations
    trimmed = int(((propensity < MIN_VOTING_PROBABILITY) & voted).sum())
    weights = voted / np.maximum(propensity, MIN_VOTING_PROBABILITY)
    weights *= len(voted) / weights.sum()
    return outcome + weights * np.where(voted, good - outcome, 0.0), trimmed


FALSE_DISCOVERY_RATE = 0.05


def estimate_mean_differences(
    values: Mapping[str, Floats],
    second: Bools,
    unit: Ints,
    rng: np.random.Generator,
) -> dict[str, Figure]:
    """Estimate differences of the samples' means, second minus first, with bootstrap intervals.

    Args:
        values: By name; NaN where a conversation has none `[conversation]`.
        second: Whether a conversation is of the second sample `[conversation]`.
        unit: Number of what is resampled together: a user's conversations, and a pair of one id
            `[conversation]`.
    """
    measures = {}
    for name, column in values.items():
        measures[name] = Measure(_make_difference_statistic(column, second))
    return estimate_figures_on_same_resamples(measures, unit, rng)


def _make_difference_statistic(values: Floats, second: Bools) -> WeightedStatistic:
    present = ~np.isnan(values)
    # means of each sample, of the conversations that have a value
    filled = np.where(present, values, 0.0)

    def statistic(weights: Floats) -> Floats:
        means = []
        for side in sides:
            means.append(
                divide_or_nan(
                    weights[:, side] @ filled[side],
                    weights[:, side].sum(axis=1),
                )
            )

        return np.asarray(means[1] - means[0])

    sides = [np.flatnonzero(present & ~second), np.flatnonzero(present & second)]
    return statistic


def list_names_of_significant_differences(differences: Mapping[str, Figure]) -> frozenset[str]:
    """Return the names with significant differences, with the false discovery rate bounded.

    Source: Benjamini and Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x; p-values by the
        width of the interval.
    """
    p: dict[str, float] = {}
    for name, figure in differences.items():
        if figure.value is None or figure.low is None or figure.high is None:
            continue
        # two-sided p of a normal deviate, from the width of the interval
        half = (figure.high - figure.low) / 2
        if half:
            z = abs(figure.value) / half * norm.ppf(1 - FALSE_DISCOVERY_RATE / 2)
            p[name] = float(2 * norm.sf(z))
        else:
            p[name] = float(not figure.value)

    if p:
        adjusted = false_discovery_control(list(p.values()))
    else:
        adjusted = ()

    moved_names = []
    for name, adjusted_p in zip(p, adjusted, strict=True):
        if adjusted_p <= FALSE_DISCOVERY_RATE:
            moved_names.append(name)
    return frozenset(moved_names)


def count_conversations_for_difference(difference: float, spread: float) -> int:
    """Count the conversations a side that find a difference of means with a power of .8.

    Args:
        spread: Standard deviation of one conversation.
    """
    reach = float(norm.ppf(1 - FALSE_DISCOVERY_RATE / 2) + norm.ppf(0.8))
    return int(np.ceil(2 * (spread * reach / difference) ** 2))
