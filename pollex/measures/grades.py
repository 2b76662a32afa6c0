"""How grades are distributed, and how far two judges' grades of the same texts lie apart.

Source: Vallender 1974 for the Wasserstein distance as the area between distribution functions, doi:10.1137/1118101.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pollex.measures.arrays import Floats
from pollex.measures.intervals import LEVEL, RESAMPLES, Figure, Measured, ends, mean_of, measured, resampled


def mean_grade(grades: Floats, rng: np.random.Generator, resamples: int = RESAMPLES) -> Measured:
    """The mean with its interval; undefined where there are none, and without an interval where all are alike.

    Args:
        grades: `[text]`, one a text; NaN is a text without one, which counts for nothing.
    """
    given = grades[~np.isnan(grades)]
    found = measured({"mean": Figure(mean_of(given))}, np.arange(len(given)), rng, resamples)["mean"]
    # So are all resamples then, and would have the mean beyond doubt.
    return replace(found, low=None, high=None) if len(given) and np.ptp(given) == 0 else found


def cumulative(grades: Floats, levels: Floats) -> Floats:
    """Share of the grades that are at most each level `[level]`; NaN everywhere where there are no grades.

    Args:
        grades: `[text]`; NaN counts for nothing.
    """
    given = grades[~np.isnan(grades)]
    if not len(given):
        return np.full(len(levels), np.nan)
    return np.asarray(np.searchsorted(np.sort(given), levels, side="right") / len(given), float)


def areas(
    judges: dict[str, Floats], human: Floats, rng: np.random.Generator, resamples: int = RESAMPLES
) -> dict[str, Measured]:
    """Area between each judge's cumulative distribution and people's, in grades; 0 where they are the same.

    With two judges or more, `a - b` is by how much a lies farther from people than b, on the same resamples; it is
    noise where its interval has 0 in it. On few texts that is told too small where one lies near people: noise drives
    up what is near 0 more than what is far from it.

    Args:
        judges: Grades by judge `[text]`; NaN is missing. Only texts that all of them and people graded count.
        human: People's grades `[text]`.
    """
    both = ~np.isnan(np.stack([human, *judges.values()])).any(axis=0)
    n = int(both.sum())
    pairs = {name: _Pair.of(grades[both], human[both]) for name, grades in judges.items()}
    differences = {f"{a} - {b}": (a, b) for a, b in combinations(pairs, 2)}
    if not n:
        return dict.fromkeys([*pairs, *differences], Measured(None, None, None, 0, 0, "no grades in common"))
    weights = list(resampled(np.arange(n), resamples, rng))
    drawn = {name: np.concatenate([[], *(pair.areas(w) for w in weights)]) for name, pair in pairs.items()}
    values = {name: float(pair.areas(np.ones((1, n)))[0]) for name, pair in pairs.items()}
    found = {}
    for name, pair in pairs.items():
        swaps = (rng.choice([1.0, -1.0], size=w.shape) for w in weights)
        alike = np.concatenate([[], *map(pair.areas, swaps)])
        found[name] = _measured_area(values[name], drawn[name], alike, n)
    for name, (a, b) in differences.items():
        value = values[a] - values[b]
        found[name] = Measured(value, *_widest(value, drawn[a] - drawn[b], n), n, n)
    return found


@dataclass(frozen=True, eq=False)
class _Pair:
    """A judge's grades beside people's, as step functions F and G on the levels that either has.

    Attributes:
        below: F − G of each text `[text, level]`.
        widths: From each level to the next `[level − 1]`.
    """

    below: Floats
    widths: Floats

    @classmethod
    def of(cls, grades: Floats, human: Floats) -> _Pair:
        """Both of the same texts `[text]`."""
        levels = np.unique(np.concatenate([grades, human]))
        return cls((grades[:, None] <= levels).astype(float) - (human[:, None] <= levels), np.diff(levels))

    def areas(self, weights: Floats) -> Floats:
        """∫ |F − G| `[resample]`; a text that weighs −1 has its two grades swapped."""
        gaps = np.abs(weights @ self.below)[:, :-1] / np.abs(weights).sum(axis=1, keepdims=True)
        return np.asarray(gaps @ self.widths, float)


def _measured_area(value: float, draws: Floats, alike: Floats, texts: int) -> Measured:
    """An area with its interval, which begins at 0 where chance alone gives as large a one in 5 of 100 cases.

    Args:
        alike: Areas if it is chance which of a text's two grades is whose `[draw]`: a permutation test.
    """
    low, high = _widest(value, draws, texts)
    if low is not None and value <= np.quantile(alike, LEVEL):
        low = 0.0
    return Measured(value, None if low is None else max(0.0, low), high, texts, texts)


def _widest(value: float, draws: Floats, texts: int) -> tuple[float | None, float | None]:
    """The interval, mirrored at the value or moved back by what resampling drives up, whichever reaches further.

    Resampling drives up an area, even one of 0, and that of one judge more than another's. The sample itself has done
    as much, if the area is small, and nothing, if it is large; which of the two it is, it doesn't tell. Neither alone
    holds the truth more than 70 to 85 times of 100.
    """
    if len(draws) < 2:
        return None, None
    low, high = ends(draws, texts)
    moved = float(draws.mean()) - value
    return min(value, 2 * value - high, low - moved), max(value, 2 * value - low, high - moved)
