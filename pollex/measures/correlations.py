"""Correlations of weighted judgments as statistics that can be resampled: Pearson, Spearman, Kendall's tau-b, kappa."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.measures.arrays import Floats, Ints
from pollex.measures.intervals import Figure, Measure, Statistic, measured, ratio

CELLS = 1 << 19
"""Cells of contingency tables held at once: 4 MB."""

FLAT = 1e-12
"""A variance under this share of the whole data's is rounding."""


def pearson_statistic(x: Floats, y: Floats) -> Statistic:
    """Make Pearson's correlation of `[judgment]` with `[judgment]` a statistic."""
    # Centred first: raw moments of values far from 0 would cancel.
    a, b = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)
    floors = FLAT * (a * a).mean() if len(x) else 0.0, FLAT * (b * b).mean() if len(y) else 0.0

    def statistic(weights: Floats) -> Floats:
        moments = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        return _correlation(moments, floors)

    return statistic


def spearman_statistic(x: Floats, y: Floats) -> Statistic:
    """Make Spearman's correlation a statistic: Pearson's of the ranks, where ties share their mean rank."""

    def of_tables(tables: Floats) -> Floats:
        ranks = _midranks(tables.sum(axis=2)), _midranks(tables.sum(axis=1))
        total = tables.sum(axis=(1, 2))
        a, b = ranks[0] - (total / 2)[:, None], ranks[1] - (total / 2)[:, None]
        moments = [
            np.zeros_like(total),
            np.zeros_like(total),
            np.einsum("rxy,rx->r", tables, a * a),
            np.einsum("rxy,ry->r", tables, b * b),
            np.einsum("rxy,rx,ry->r", tables, a, b, optimize=True),
        ]
        return _correlation(np.stack(moments), (0.0, 0.0))

    return _of_tables(of_tables, x, y)


def kendall_statistic(x: Floats, y: Floats) -> Statistic:
    """Make Kendall's tau-b a statistic.

    Pairs in the same order minus those in opposite order, over √(untied in x · untied in y).
    """

    def of_tables(tables: Floats) -> Floats:
        # Weight of all cells of a lower row, by column; then of those in a lower, and in a higher column.
        above = tables.cumsum(axis=1) - tables
        lower = above.cumsum(axis=2) - above
        higher = above.sum(axis=2, keepdims=True) - lower - above
        agreement = (tables * (lower - higher)).sum(axis=(1, 2))
        total = tables.sum(axis=(1, 2))
        untied = [(total**2 - (tables.sum(axis=axis) ** 2).sum(axis=1)) / 2 for axis in (2, 1)]
        return ratio(agreement, np.sqrt(untied[0] * untied[1]))

    return _of_tables(of_tables, x, y)


def mean_correlation(values: Floats, unit: Ints, rng: np.random.Generator) -> Figure:
    """Compute the mean of Pearson's correlation over all pairs of columns `[conversation, rubric]`."""
    first, second = np.triu_indices(values.shape[1], 1)
    if not len(first):
        return Figure(None, n=len(values), undefined="there are fewer than two rubrics")
    products, squares = values[:, first] * values[:, second], values**2

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        mean = weights @ values / total
        spread = np.sqrt(np.maximum(weights @ squares / total - mean**2, 0))
        together = weights @ products / total - mean[:, first] * mean[:, second]
        both = spread[:, first] * spread[:, second]
        found: Floats = np.divide(together, both, out=np.zeros_like(both), where=both > 1e-9)
        return np.asarray(found.mean(axis=1))

    return measured({"mean": Measure(statistic)}, unit, rng, 500)["mean"]


def interval_alpha_statistic(x: Floats, y: Floats) -> Statistic:
    """Make Krippendorff's alpha of two judges on an interval scale a statistic, of whatever values.

    1 − (2n − 1) Σ(x − y)² / (2n Σ(x² + y²) − (Σ(x + y))²), since the values of both are drawn from one pool.
    """
    middle = np.concatenate([x, y]).mean() if len(x) else 0.0  # raw moments of values far from 0 would cancel
    a, b = x - middle, y - middle
    columns = np.stack([(a - b) ** 2, a * a + b * b, a + b, np.ones(len(a))], axis=1)

    def statistic(weights: Floats) -> Floats:
        apart, squares, total, n = (weights @ columns).T
        spread = 2 * n * squares - total**2
        return 1 - ratio((2 * n - 1) * apart, np.where(spread > FLAT * (2 * n) ** 2, spread, 0.0))

    return statistic


def kappa_statistic(x: Floats | Ints, y: Floats | Ints) -> Statistic:
    """Make Cohen's kappa with quadratic weights a statistic: 1 − E(x−y)² / E(x−y′)².

    Here y′ is drawn independently of x; both are values, or places of options `[judgment]`.
    """
    a, b = x.astype(float), y.astype(float)
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)

    def statistic(weights: Floats) -> Floats:
        a, b, aa, bb, ab = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        chance = aa + bb - 2 * a * b
        return 1 - ratio(aa + bb - 2 * ab, np.where(chance > FLAT, chance, 0.0))

    return statistic


def _of_tables(of_tables: Callable[[Floats], Floats], x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Statistic:
    """Turn a statistic of contingency tables `[resample, x, y]` into one of weights."""
    (xs, row), (ys, column) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    shape = len(xs), len(ys)
    cells = row * shape[1] + column
    step = max(1, CELLS // max(1, shape[0] * shape[1]))

    def table(weights: Floats) -> Floats:
        size = shape[0] * shape[1]
        flat = (np.arange(len(weights))[:, None] * size + cells).ravel()
        return np.bincount(flat, weights.ravel(), len(weights) * size).astype(float).reshape(-1, *shape)

    def statistic(weights: Floats) -> Floats:
        blocks = [of_tables(table(weights[start : start + step])) for start in range(0, len(weights), step)]
        return np.concatenate(blocks)

    return statistic


def _midranks(counts: Floats) -> Floats:
    """Compute the mean rank of the copies of each value, minus ½ `[resample, value]`."""
    return np.asarray(counts.cumsum(axis=1) - counts / 2)


def _correlation(moments: Floats, floors: tuple[float, float]) -> Floats:
    """Compute the correlation from weighted means of a, b, a², b² and ab.

    NaN where a variance is under its floor.
    """
    a, b, aa, bb, ab = moments
    spread = aa - a * a, bb - b * b
    varies = (spread[0] > floors[0]) & (spread[1] > floors[1])
    found = ratio(ab - a * b, np.sqrt(np.where(varies, spread[0] * spread[1], 0.0)))
    return np.clip(found, -1.0, 1.0)  # rounding
