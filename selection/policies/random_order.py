"""Rubrics drawn by lot: what a policy has to beat."""

from __future__ import annotations

import numpy as np

from pollex.measures.arrays import Ints
from pollex.selection.pool import Pool, ranked


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:  # noqa: ARG001 - the contract of policies
    """Choose uniformly among all sets that use both budgets.

    The permutation is over ids, so that columns may be shuffled.
    """
    return ranked(pool, rng.permutation(len(pool.rank)).astype(float)[pool.rank])
