"""Interval of a mean that holds at every look, however often one looks.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting",
doi:10.1093/jrsssb/qkad009, hedged capital with predictable plug-in bets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pollex.measures.arrays import Floats

CANDIDATE_MEAN_COUNT = 1000
"""Means that are tried, evenly over 0 … 1; ends are rounded outwards to the next one."""


@dataclass
class ConfidenceSequence:
    """Running interval of the mean of values in 0 … 1, valid at every look.

    Attributes:
        alpha: Chance that the interval ever misses the mean.
        n: Values seen.
        low, high: The interval; low > high where no mean fits all values: the mean has drifted.
    """

    alpha: float = 0.05
    n: int = 0
    low: float = 0.0
    high: float = 1.0
    _sum: float = 0.0
    _squares: float = 0.25
    _variance: float = 0.25
    _above: Floats = field(default_factory=lambda: np.zeros(CANDIDATE_MEAN_COUNT + 1), repr=False)
    _below: Floats = field(default_factory=lambda: np.zeros(CANDIDATE_MEAN_COUNT + 1), repr=False)
    _possible: Floats = field(
        default_factory=lambda: np.ones(CANDIDATE_MEAN_COUNT + 1, dtype=float),
        repr=False,
    )

    def add(self, values: Floats) -> ConfidenceSequence:
        """Add values `[n]`, 0 … 1, in their order; return the sequence itself."""
        for value in values:
            self._bet(float(value))

        # the interval spans all means that were never ruled out; empty: low over high
        possible = np.flatnonzero(self._possible)
        self.low = 1.0
        self.high = 0.0
        if len(possible):
            self.low = max(0.0, (possible[0] - 1) / CANDIDATE_MEAN_COUNT)
            self.high = min(1.0, (possible[-1] + 1) / CANDIDATE_MEAN_COUNT)

        return self

    @property
    def empty(self) -> bool:
        """Whether no mean fits all values: an alarm of drift."""
        return self.low > self.high

    def _bet(self, value: float) -> None:
        self.n += 1
        # each mean is bet against, from both sides; the stake is small where values vary
        means = np.linspace(0.0, 1.0, CANDIDATE_MEAN_COUNT + 1)
        stake = np.sqrt(2 * np.log(2 / self.alpha) / (self._variance * self.n * np.log1p(self.n)))
        with np.errstate(divide="ignore"):
            up = np.minimum(stake, 0.5 / means)
            down = np.minimum(stake, 0.5 / (1 - means))

        # At a mean of 0 or 1 the cap is infinite, and the bet is the stake: it can lose everything,
        # not more.
        self._above += np.log(np.maximum(1 + up * (value - means), 1e-300))
        self._below += np.log(np.maximum(1 - down * (value - means), 1e-300))
        # running mean and variance, by which the next bet is sized
        self._sum += value
        mean = (0.5 + self._sum) / (self.n + 1)
        self._squares += (value - mean) ** 2
        self._variance = self._squares / (self.n + 1)
        # half of the capital on either side: a mean that made it grow 1/α-fold is ruled out
        capital = np.maximum(self._above, self._below) + np.log(0.5)
        self._possible[capital >= np.log(1 / self.alpha)] = 0.0


def bound_mean_difference_at_every_look(differences: Floats) -> tuple[float, float]:
    """Bound the mean of differences in −1 … 1 `[n]`, valid at every look.

    low > high if the mean has drifted.
    """
    sequence = ConfidenceSequence().add((np.asarray(differences, dtype=float) + 1) / 2)
    return 2 * sequence.low - 1, 2 * sequence.high - 1
