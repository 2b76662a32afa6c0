"""Whether a probability of 70 % comes true in 70 % of cases: predicted against observed, in bins of equal size.

Source of the interval: Wilson 1927, doi:10.1080/01621459.1927.10502953.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pollex.selection.losses import Bools, Floats

Z = 1.959964
"""Half width of the 95 % interval of a standard normal variable."""

PER_BIN = 10
MOST_BINS = 8


@dataclass(frozen=True)
class Bin:
    """Conversations of about the same probability.

    Attributes:
        predicted: Their mean probability.
        observed: The share that is positive.
        low: Lower end of the 95 % interval of `observed`.
        high: Upper end.
    """

    predicted: float
    observed: float
    low: float
    high: float
    n: int


def bins_of(probabilities: Floats, positive: Bools) -> list[Bin]:
    """Bins of at least ten conversations, at most eight, in the order of probability; equal ones stay together.

    Args:
        probabilities: Predicted, `[conversation]`.
        positive: Labels `[conversation]`.
    """
    order = np.argsort(probabilities, kind="stable")
    wanted = min(max(len(order) // PER_BIN, 1), MOST_BINS)
    cuts = np.quantile(probabilities, np.arange(1, wanted) / wanted, method="lower") if len(order) else np.empty(0)
    numbers = np.searchsorted(np.unique(cuts), probabilities[order], side="left")
    groups = [order[numbers == bin_] for bin_ in np.unique(numbers)]
    return [_bin(probabilities[group], positive[group]) for group in groups]


def _bin(probabilities: Floats, positive: Bools) -> Bin:
    low, high = wilson(int(positive.sum()), len(positive))
    return Bin(float(probabilities.mean()), float(positive.mean()), low, high, len(positive))


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share."""
    share, z2 = successes / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def brier(probabilities: Floats, positive: Bools) -> float:
    """The mean squared error of the probabilities. Source: Brier 1950."""
    return float(np.mean((probabilities - positive) ** 2))
