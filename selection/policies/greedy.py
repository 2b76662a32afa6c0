"""RUBICON's own policy: correctness and sharpness. Source: Biyani et al. 2024."""

from __future__ import annotations

import numpy as np

from pollex.selection.pool import Pool, Selection, walk


def select(pool: Pool, alpha: float, rng: np.random.Generator) -> Selection:  # noqa: ARG001 - the contract of policies
    """Add the rubric with the lowest `−LC/(10·|R|) + α·LS` of the set with it in, until the budgets are used."""
    return walk(pool, alpha)
