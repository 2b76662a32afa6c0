"""Greedy choice, then exchanges within a kind until none lowers the loss."""

from __future__ import annotations

import numpy as np

from pollex.measures.arrays import Ints
from pollex.selection.losses import RESOLUTION
from pollex.selection.policies import greedy
from pollex.selection.pool import Pool, walk

ALPHAS = greedy.ALPHAS

MOST = 100
"""Exchanges at most: each lowers the loss, so that none comes twice, and real pools need a handful."""


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:
    """Choose greedily, make the best exchanges, and order the result greedily."""
    chosen = frozenset(greedy.choose(pool, alpha, rng).tolist())
    for _ in range(MOST):
        better = _exchanged(pool, alpha, chosen)
        if better is None:
            break
        chosen = better
    inside = np.isin(np.arange(len(pool.kinds)), list(chosen))
    return walk(pool, lambda taken: np.where(inside[pool.open(taken)], pool.losses(taken, alpha), np.inf))


def _exchanged(pool: Pool, alpha: float, chosen: frozenset[int]) -> frozenset[int] | None:
    """Return the set after the exchange that lowers the loss most; None where none does.

    Of equals, the smallest ids go.
    """
    best, lowest = None, np.inf
    for leaving in sorted(chosen, key=pool.rank.__getitem__):
        rest = chosen - {leaving}
        candidates, losses = pool.open(rest), pool.losses(rest, alpha)
        now = float(losses[candidates == leaving][0])
        coming = pool.cheapest(candidates, losses)
        if losses[coming] < min(now, lowest) - RESOLUTION:
            best, lowest = rest | {int(candidates[coming])}, float(losses[coming])
    return best
