"""How well two numbers go together, as functions of weights: a weight counts as so many copies.

Sources: Spearman 1904; Kendall 1945 for tau-b, doi:10.1093/biomet/33.3.239; Cohen 1968 for kappa with weights,
doi:10.1037/h0026256.

Rank statistics come from the contingency table of both numbers' distinct values, one a resample. None of them checks
that its numbers vary: where they don't within a resample, the figure is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.calibration.intervals import BLOCK, Statistic
from pollex.calibration.questionnaire import Floats, Ints

FLAT = 1e-12
"""A variance under this share of the whole data's is rounding."""


def pearson_statistic(x: Floats, y: Floats) -> Statistic:
    """Pearson's correlation of `[judgment]` with `[judgment]`."""
    # Centred first: raw moments of values far from 0 would cancel.
    a, b = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)
    floors = FLAT * (a * a).mean() if len(x) else 0.0, FLAT * (b * b).mean() if len(y) else 0.0

    def statistic(weights: Floats) -> Floats:
        moments = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        return _correlation(moments, floors)

    return statistic


def spearman_statistic(x: Floats, y: Floats) -> Statistic:
    """Spearman's correlation: Pearson's of the ranks, where equals share the mean of their ranks."""

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
    """Kendall's tau-b: pairs in the same order less those in opposite order, over √(untied in x · untied in y)."""

    def of_tables(tables: Floats) -> Floats:
        # Weight of all cells of a lower row, by column; then of those in a lower, and in a higher column.
        above = tables.cumsum(axis=1) - tables
        lower = above.cumsum(axis=2) - above
        higher = above.sum(axis=2, keepdims=True) - lower - above
        agreement = (tables * (lower - higher)).sum(axis=(1, 2))
        total = tables.sum(axis=(1, 2))
        untied = [(total**2 - (tables.sum(axis=axis) ** 2).sum(axis=1)) / 2 for axis in (2, 1)]
        return _ratio(agreement, np.sqrt(untied[0] * untied[1]))

    return _of_tables(of_tables, x, y)


def kappa_statistic(x: Ints, y: Ints) -> Statistic:
    """Cohen's kappa with quadratic weights: 1 − E(x−y)² / E(x−y′)², with y′ drawn independently of x.

    Args:
        x: Places of options `[judgment]`.
        y: Likewise.
    """
    a, b = x.astype(float), y.astype(float)
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)

    def statistic(weights: Floats) -> Floats:
        a, b, aa, bb, ab = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        chance = aa + bb - 2 * a * b
        return 1 - _ratio(aa + bb - 2 * ab, np.where(chance > FLAT, chance, 0.0))

    return statistic


def _of_tables(of_tables: Callable[[Floats], Floats], x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Statistic:
    """A statistic of contingency tables `[resample, x value, y value]` as one of weights, in blocks that fit."""
    (xs, row), (ys, column) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    shape = len(xs), len(ys)
    cells = row * shape[1] + column
    step = max(1, BLOCK // max(1, shape[0] * shape[1]))

    def table(weights: Floats) -> Floats:
        size = shape[0] * shape[1]
        flat = (np.arange(len(weights))[:, None] * size + cells).ravel()
        return np.bincount(flat, weights.ravel(), len(weights) * size).astype(float).reshape(-1, *shape)

    def statistic(weights: Floats) -> Floats:
        blocks = [of_tables(table(weights[start : start + step])) for start in range(0, len(weights), step)]
        return np.concatenate(blocks)

    return statistic


def _midranks(counts: Floats) -> Floats:
    """Mean rank of the copies of each value, less ½ `[resample, value]`."""
    return np.asarray(counts.cumsum(axis=1) - counts / 2)


def _correlation(moments: Floats, floors: tuple[float, float]) -> Floats:
    """From the weighted means of a, b, a², b² and ab `[5, resample]`; NaN where a variance is under its floor."""
    a, b, aa, bb, ab = moments
    spread = aa - a * a, bb - b * b
    varies = (spread[0] > floors[0]) & (spread[1] > floors[1])
    found = _ratio(ab - a * b, np.sqrt(np.where(varies, spread[0] * spread[1], 0.0)))
    return np.clip(found, -1.0, 1.0)  # rounding


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratios: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return ratios
