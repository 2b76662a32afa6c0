"""Differences between two samples of conversations: means with intervals, and sample sizes."""

from collections.abc import Mapping

import numpy as np
from scipy.stats import false_discovery_control, norm

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure, Measure, Statistic, measured, ratio

ALPHA = 0.05


def mean_differences(
    values: Mapping[str, Floats], second: Bools, unit: Ints, rng: np.random.Generator
) -> dict[str, Figure]:
    """Estimate differences of the samples' means, second minus first, with bootstrap intervals.

    Args:
        values: By name; NaN where a conversation has none `[conversation]`.
        second: Whether a conversation is of the second sample `[conversation]`.
        unit: Number of what is resampled together: a user's conversations, and a pair of one id `[conversation]`.
    """
    return measured({name: Measure(_difference(column, second)) for name, column in values.items()}, unit, rng)


def _difference(values: Floats, second: Bools) -> Statistic:
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)

    def statistic(weights: Floats) -> Floats:
        means = [ratio(weights[:, side] @ filled[side], weights[:, side].sum(axis=1)) for side in sides]
        return np.asarray(means[1] - means[0])

    sides = [np.flatnonzero(known & ~second), np.flatnonzero(known & second)]
    return statistic


def moved(found: Mapping[str, Figure]) -> frozenset[str]:
    """Return the names with significant differences, with the false discovery rate bounded.

    Source: Benjamini and Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x; p-values by the width of the interval.
    """
    p: dict[str, float] = {}
    for name, one in found.items():
        if one.value is None or one.low is None or one.high is None:
            continue
        half = (one.high - one.low) / 2
        p[name] = float(2 * norm.sf(abs(one.value) / half * norm.ppf(1 - ALPHA / 2))) if half else float(not one.value)
    adjusted = false_discovery_control(list(p.values())) if p else ()
    return frozenset(name for name, one in zip(p, adjusted, strict=True) if one <= ALPHA)


def conversations_for_difference(difference: float, spread: float) -> int:
    """Count the conversations a side that find a difference of means with a power of .8.

    Args:
        spread: Standard deviation of one conversation.
    """
    reach = float(norm.ppf(1 - ALPHA / 2) + norm.ppf(0.8))
    return int(np.ceil(2 * (spread * reach / difference) ** 2))
