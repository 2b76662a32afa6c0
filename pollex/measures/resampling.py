"""Bootstrap resamples of labelled conversations, and the 95 % intervals that they give.

Sources: Efron and Tibshirani 1993, chapter 13, for percentile intervals; Hesterberg 2015,
doi:10.1080/00031305.2015.1089789, for drawing them out where there is little of a class; Pepe 2003, "The Statistical
Evaluation of Medical Tests", section 5.2, for an interval on log-odds.

Each class is resampled by itself: splits are stratified, so how many of each class there are is no chance, and every
resample has both. Conversations that go together, a user's for example, are resampled together, whatever their classes:
how many users have but one class is chance, and with these by themselves intervals held what they say 83 to 93 times of
100. A resample is its weights, how often each conversation is in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pollex.selection.losses import Bools, Floats, Ints

RESAMPLES = 2000
LEVEL = 0.95
BLOCK = 1 << 21
"""Weights held at once: 16 MB."""

FEWEST = 5
"""Conversations of the smaller class that a bootstrap takes; of fewer there are too few different resamples."""


class Sample:
    """What is resampled: conversations, positives first, or what goes together of them.

    Args:
        sizes: Of both classes.
        together: What goes together bears one number `[conversation]`; None: each is alone.

    Attributes:
        unit: Of each conversation, from 0 on `[conversation]`.
        having: How many units have a conversation of each class.
    """

    def __init__(self, sizes: tuple[int, int], together: Ints | None) -> None:
        self.sizes = sizes
        self.unit = np.arange(sum(sizes)) if together is None else np.unique(together, return_inverse=True)[1]
        up = np.arange(sum(sizes)) < sizes[0]
        classes = [np.bincount(self.unit, side) > 0 for side in (up, ~up)]
        self.having = int(classes[0].sum()), int(classes[1].sum())
        self._has = np.stack([each for each in classes if each.any()] or [np.ones(len(classes[0]), bool)], axis=1)
        alone = np.bincount(self.unit) == 1
        self._strata = [np.flatnonzero(stratum) for stratum in (alone & classes[0], alone & classes[1], ~alone)]

    def units(self, of: Bools) -> int:
        """How many units these conversations are in `[conversation]`."""
        return len(np.unique(self.unit[of]))

    def resampled(self, count: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Weights of resamples `[resample, conversation]`, in blocks."""
        step = max(1, BLOCK // len(self.unit))
        for start in range(0, count, step):
            rows = min(step, count - start)
            weights = self._drawn(rows, rng)
            while (lacking := (weights @ self._has == 0).any(axis=1)).any():
                weights[lacking] = self._drawn(int(lacking.sum()), rng)
            yield weights[:, self.unit]

    def _drawn(self, rows: int, rng: np.random.Generator) -> Floats:
        """Weights of units `[resample, unit]`; a resample may lack a class."""
        weights = np.zeros((rows, len(self._has)))
        for stratum in self._strata:
            weights[:, stratum] = drawn(rows, len(stratum), rng)
        return weights


def drawn(rows: int, size: int, rng: np.random.Generator) -> Floats:
    """How often each of so many is drawn, in as many draws `[row, size]`."""
    if size == 0:
        return np.zeros((rows, 0))
    picks = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size).astype(float)


def ends(draws: Floats, units: int) -> tuple[float, float]:
    """Percentiles that are further out than 2.5 % and 97.5 %, by as much as Student's t is with so many units."""
    from scipy.special import ndtr  # a quarter of a second to import

    beyond = float(ndtr(-_student(units)))
    low, high = np.quantile(draws, [beyond, 1 - beyond]).tolist()
    return low, high


def ends_of_odds(value: float, draws: Floats, units: int) -> tuple[float, float]:
    """So many standard errors to either side of the log-odds of a value that is neither 0 nor 1."""
    from scipy.special import expit, logit  # as above

    half = _student(units) * float(draws.std()) / (value * (1 - value))
    return float(expit(logit(value) - half)), float(expit(logit(value) + half))


def _student(units: int) -> float:
    """Half width of the 95 % interval, in standard deviations of resamples: they have (n − 1)/n of the variance."""
    from scipy.special import stdtrit  # as above

    return float(np.sqrt(units / (units - 1)) * stdtrit(units - 1, (1 + LEVEL) / 2))
