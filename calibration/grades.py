"""How grades are distributed, and how far two judges' grades of the same texts lie apart.

Source: Vallender 1974 for the Wasserstein distance as the area between distribution functions, doi:10.1137/1118101.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from pollex.calibration.intervals import (
    RESAMPLES,
    Figure,
    Measured,
    Statistic,
    mean_of,
    measured,
    resampled,
    with_interval,
)
from pollex.calibration.questionnaire import Floats


def mean_grade(grades: Floats, rng: np.random.Generator, resamples: int = RESAMPLES) -> Measured:
    """The mean with its interval; undefined where there are none.

    Args:
        grades: `[text]`, one a text; NaN is a text without one, which counts for nothing.
    """
    given = grades[~np.isnan(grades)]
    return measured({"mean": Figure(mean_of(given))}, np.arange(len(given)), rng, resamples)["mean"]


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
    noise where its interval has 0 in it.

    Args:
        judges: Grades by judge `[text]`; NaN is missing. Only texts that all of them and people graded count.
        human: People's grades `[text]`.
    """
    both = ~np.isnan(np.stack([human, *judges.values()])).any(axis=0)
    n = int(both.sum())
    statistics = {name: _area(grades[both], human[both]) for name, grades in judges.items()}
    differences = {f"{a} - {b}": (a, b) for a, b in combinations(statistics, 2)}
    if not n:
        return dict.fromkeys([*statistics, *differences], Measured(None, None, None, 0, 0, "no grades in common"))
    weights = [np.ones((1, n)), *resampled(np.arange(n), resamples, rng)]
    drawn = {name: np.concatenate([statistic(w) for w in weights]) for name, statistic in statistics.items()}
    # Resampling drives an area up, even one of 0, and that of one judge more than another's: of a difference what they
    # were driven up by on average is taken off.
    found = {name: with_interval(float(all_[0]), all_[1:], n, n, kind="basic") for name, all_ in drawn.items()}
    for name, (a, b) in differences.items():
        value, gaps = float(drawn[a][0] - drawn[b][0]), drawn[a][1:] - drawn[b][1:]
        found[name] = with_interval(value, gaps - (gaps.mean() - value) if len(gaps) else gaps, n, n)
    return found


def _area(grades: Floats, human: Floats) -> Statistic:
    """∫ |F − G|; on sorted levels, where both are step functions, a sum."""
    levels = np.unique(np.concatenate([grades, human]))
    below = (grades[:, None] <= levels).astype(float) - (human[:, None] <= levels)  # F − G of each text
    widths = np.diff(levels)

    def statistic(weights: Floats) -> Floats:
        gaps = np.abs(weights @ below)[:, :-1] / weights.sum(axis=1, keepdims=True)
        return np.asarray(gaps @ widths, float)

    return statistic
