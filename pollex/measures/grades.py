"""Distributions of grades, and distances between two judges' grades of the same texts.

Source: Vallender 1974 for the Wasserstein distance as the area between distribution functions, doi:10.1137/1118101.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pollex.measures.arrays import Floats
from pollex.measures.correlations import interval_alpha_statistic, pearson_statistic, spearman_statistic
from pollex.measures.intervals import LEVEL, RESAMPLES, Figure, Measure, interval_bounds, mean_of, measured, resampled


def mean_grade(grades: Floats, rng: np.random.Generator) -> Figure:
    """Compute the mean; undefined without grades, without an interval where all are alike.

    Args:
        grades: `[text]`, one a text; NaN is a text without one, which counts for nothing.
    """
    given = grades[~np.isnan(grades)]
    found = measured({"mean": Measure(mean_of(given))}, np.arange(len(given)), rng)["mean"]
    # All resamples are alike then, too, and would call the mean certain.
    return replace(found, low=None, high=None) if len(given) and np.ptp(given) == 0 else found


def cumulative(grades: Floats, levels: Floats) -> Floats:
    """Compute the share of grades up to each level `[level]`; NaN without grades.

    Args:
        grades: `[text]`; NaN counts for nothing.
    """
    given = grades[~np.isnan(grades)]
    if not len(given):
        return np.full(len(levels), np.nan)
    return np.asarray(np.searchsorted(np.sort(given), levels, side="right") / len(given), float)


def paired(grades: Floats, human: Floats, rng: np.random.Generator) -> dict[str, Figure]:
    """Compute how far a judge's grades agree with people's of the same texts: Pearson, Spearman, Krippendorff's alpha.

    Distributions may be alike where right grades are given to wrong answers; these then are near 0 or below.

    Args:
        grades: `[text]`; NaN is missing, and that text doesn't count.
        human: People's grades `[text]`.
    """
    both = ~(np.isnan(grades) | np.isnan(human))
    x, y = grades[both], human[both]
    why = "one of them gives all the same grade"
    measures = {"pearson": pearson_statistic, "spearman": spearman_statistic, "alpha": interval_alpha_statistic}
    measured_ = {name: Measure(make(x, y), empty=why) for name, make in measures.items()}
    found = measured(measured_, np.arange(len(x)), rng)
    # All resamples of grades that are the same are perfect, too, which doesn't make it certain.
    return {name: replace(one, low=None, high=None) for name, one in found.items()} if (x == y).all() else found


def areas(
    judges: dict[str, Floats], human: Floats, rng: np.random.Generator, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """Compute the area between each judge's cumulative distribution and people's, in grades.

    The area is 0 where both are the same. With two judges or more, `a - b` is how much farther a is from people than b,
    on the same resamples; it is noise where its interval contains 0. On few texts it is too small where one judge is
    near people: noise drives up an area near 0 more than a large one.

    Args:
        judges: Grades by judge `[text]`; NaN is missing. Only texts that all of them and people graded count.
        human: People's grades `[text]`.
    """
    both = ~np.isnan(np.stack([human, *judges.values()])).any(axis=0)
    n = int(both.sum())
    pairs = {name: _Pair.of(grades[both], human[both]) for name, grades in judges.items()}
    differences = {f"{a} - {b}": (a, b) for a, b in combinations(pairs, 2)}
    if not n:
        return dict.fromkeys([*pairs, *differences], Figure(None, undefined="no grades in common", units=0))
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
        found[name] = Figure(value, *_widest(value, drawn[a] - drawn[b], n), n, units=n)
    return found


@dataclass(frozen=True, eq=False)
class _Pair:
    """A judge's and people's grades as step functions F and G on common levels.

    Attributes:
        below: F − G of each text `[text, level]`.
        widths: From each level to the next `[level − 1]`.
    """

    below: Floats
    widths: Floats

    @classmethod
    def of(cls, grades: Floats, human: Floats) -> _Pair:
        levels = np.unique(np.concatenate([grades, human]))
        return cls((grades[:, None] <= levels).astype(float) - (human[:, None] <= levels), np.diff(levels))

    def areas(self, weights: Floats) -> Floats:
        """Compute ∫ |F − G| `[resample]`; a text of weight −1 has its grades swapped."""
        gaps = np.abs(weights @ self.below)[:, :-1] / np.abs(weights).sum(axis=1, keepdims=True)
        return np.asarray(gaps @ self.widths, float)


def _measured_area(value: float, draws: Floats, alike: Floats, texts: int) -> Figure:
    """Give an area its interval, which begins at 0 if a permutation test fails.

    Args:
        alike: Areas with a text's two grades swapped at random `[draw]`: a permutation test.
    """
    low, high = _widest(value, draws, texts)
    if low is not None and value <= np.quantile(alike, LEVEL):
        low = 0.0
    return Figure(value, None if low is None else max(0.0, low), high, texts, units=texts)


def _widest(value: float, draws: Floats, texts: int) -> tuple[float | None, float | None]:
    """Compute the interval, mirrored at the value or moved back, whichever reaches further.

    Resampling drives up an area, even one of 0, and that of one judge more than another's. The sample itself did the
    same if the true area is small, and did not if it is large; the sample can't say which. Either interval alone holds
    the truth only 70 to 85 times of 100.
    """
    if len(draws) < 2:
        return None, None
    low, high = interval_bounds(draws, texts)
    moved = float(draws.mean()) - value
    return min(value, 2 * value - high, low - moved), max(value, 2 * value - low, high - moved)
