"""Differences of conversations between two periods, without labels.

Source of the index: Siddiqi 2006, "Credit Risk Scorecards", population stability index: Σ (q − p)
ln(q / p) over bins.
"""

from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure

MAX_STABILITY_INDEX_BINS = 10
NORMAL_QUANTILE_OF_95_INTERVAL = 1.96
STABILITY_INDEX_RESAMPLES = 500
MIN_STABILITY_INDEX_OF_DRIFT = 0.25
"""Index from which on samples are unlike each other, by custom."""
COUNT_ADDED_TO_EACH_BIN = 0.5
"""Added to the count of each bin, so that an empty one gives a number."""


@dataclass(frozen=True)
class StabilityIndex:
    """Population stability index of one value between two samples.

    Attributes:
        value: 0 where both are spread alike; by custom .1 is small and .25 large.
        expected: What sampling alone gives, were both the same.
        low, high: 95 % bootstrap interval, sampling's part taken off.
        before, after: Values in each.
    """

    value: float
    expected: float
    low: float
    high: float
    before: int
    after: int

    @property
    def marked(self) -> bool:
        """Whether the difference exceeds chance."""
        return self.low > 0


def measure_stability_of_two_samples(
    before: Floats,
    after: Floats,
    rng: np.random.Generator,
    resamples: int = STABILITY_INDEX_RESAMPLES,
) -> StabilityIndex:
    """Compare two samples' distributions over ten bins with equal shares of `before`.

    Args:
        before: Values then `[n]`.
        after: Values now `[m]`.
    """
    edges = make_bin_edges(before)
    then, now = (count_values_in_bins(values, edges) for values in (before, after))
    return measure_stability_of_bin_counts(then, now, rng, resamples)


def make_bin_edges(values: Floats) -> Floats:
    """Return the edges of at most ten bins with equal shares of values `[n]`."""
    return np.asarray(
        np.unique(np.quantile(values, np.linspace(0, 1, MAX_STABILITY_INDEX_BINS + 1)[1:-1]))
    )


def count_values_in_bins(values: Floats, edges: Floats) -> Floats:
    """Count values `[n]` in the bins between edges."""
    bins = np.searchsorted(edges, values, "right")
    return np.bincount(bins, minlength=len(edges) + 1).astype(float)


def measure_stability_of_bin_counts(
    then: Floats,
    now: Floats,
    rng: np.random.Generator,
    resamples: int = STABILITY_INDEX_RESAMPLES,
) -> StabilityIndex:
    """Compare two samples' counts over the same bins `[bin]`."""
    # what sampling alone gives, from both samples' shares, and the bootstrap of the index
    n = int(then.sum())
    m = int(now.sum())
    pooled = (then + now) / (n + m)
    same = compute_population_stability_index(
        rng.multinomial(n, pooled, resamples),
        rng.multinomial(m, pooled, resamples),
    )
    drawn = compute_population_stability_index(
        rng.multinomial(n, then / n, resamples),
        rng.multinomial(m, now / m, resamples),
    )
    value = float(compute_population_stability_index(then, now))
    expected = float(same.mean())
    # A resample adds sampling's part once more: the value has it once, a resample twice.
    low, high = np.quantile(drawn - 2 * expected, [0.025, 0.975])

    return StabilityIndex(value, expected, float(low), float(high), n, m)


def compute_population_stability_index(before: Floats | Ints, after: Floats | Ints) -> Floats:
    """Compute the population stability index of counts `[…, bin]`."""
    p = (before + COUNT_ADDED_TO_EACH_BIN) / (before + COUNT_ADDED_TO_EACH_BIN).sum(
        axis=-1, keepdims=True
    )
    q = (after + COUNT_ADDED_TO_EACH_BIN) / (after + COUNT_ADDED_TO_EACH_BIN).sum(
        axis=-1, keepdims=True
    )
    return np.asarray(((q - p) * np.log(q / p)).sum(axis=-1))


def estimate_share_without_counterpart(taken_for_second: Bools, second: Bools) -> Figure:
    """Estimate a lower bound of the share of the second sample without a counterpart in the first.

    The bound is the total variation distance that a classifier shows: its true positives minus its
    false ones.

    Args:
        taken_for_second: By a classifier that did not see the text `[text]`.
        second: Whether the text is of the second sample `[text]`.
    """
    # false and true positive rate of the classifier
    shares = []
    for side in (~second, second):
        shares.append(float(taken_for_second[side].mean()))

    sizes = [int((~second).sum()), int(second.sum())]
    error = np.sqrt(sum(p * (1 - p) / n for p, n in zip(shares, sizes, strict=True)))
    value = max(0.0, shares[1] - shares[0])
    low, high = (
        float(np.clip(shares[1] - shares[0] + side * NORMAL_QUANTILE_OF_95_INTERVAL * error, 0, 1))
        for side in (-1, 1)
    )
    return Figure(value, low, high, sizes[1])


def compute_expected_log_loss(probability: Floats) -> float:
    """Return the mean entropy of probabilities `[n]`: their expected log-loss if calibrated."""
    sides = np.stack([probability, 1 - probability])
    # 0 log 0 is 0
    return float(-(sides * np.log(np.maximum(sides, 1e-300))).sum(axis=0).mean())


def is_drift_significant(drift: StabilityIndex | None) -> bool:
    """Tell whether a drift is more than chance, and large by custom."""
    return drift is not None and drift.marked and drift.value >= MIN_STABILITY_INDEX_OF_DRIFT
