"""Whether a probability of 70 % comes true in 70 % of cases: predicted against observed, in bins of equal size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pollex.measures.reliability import wilson
from pollex.selection.losses import Bools, Floats, Ints

PER_BIN = 10
MOST_BINS = 8


@dataclass(frozen=True)
class Bin:
    """Conversations of about the same probability.

    Attributes:
        predicted: Their mean probability.
        observed: The share that is positive.
        low: Lower end of the 95 % interval of `observed`, in which what goes together counts as one.
        high: Upper end.
    """

    predicted: float
    observed: float
    low: float
    high: float
    n: int


def bins_of(probabilities: Floats, positive: Bools, together: Ints) -> list[Bin]:
    """Bins of at least ten conversations, at most eight, in the order of probability; equal ones stay together.

    Args:
        probabilities: Predicted, `[conversation]`.
        positive: Labels `[conversation]`.
        together: Those that go together bear one number `[conversation]`.
    """
    order = np.argsort(probabilities, kind="stable")
    wanted = min(max(len(order) // PER_BIN, 1), MOST_BINS)
    cuts = np.quantile(probabilities, np.arange(1, wanted) / wanted, method="lower") if len(order) else np.empty(0)
    numbers = np.searchsorted(np.unique(cuts), probabilities[order], side="left")
    groups = [order[numbers == bin_] for bin_ in np.unique(numbers)]
    return [_bin(probabilities[group], positive[group], together[group]) for group in groups]


def _bin(probabilities: Floats, positive: Bools, together: Ints) -> Bin:
    observed = float(positive.mean())
    low, high = wilson(observed, len(np.unique(together)))
    return Bin(float(probabilities.mean()), observed, float(low), float(high), len(positive))


def brier(probabilities: Floats, positive: Bools) -> float:
    """The mean squared error of the probabilities. Source: Brier 1950."""
    return float(np.mean((probabilities - positive) ** 2))
