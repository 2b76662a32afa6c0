"""RUBICON's own policy: correctness and sharpness. Source: Biyani et al. 2024."""

import numpy as np

from pollex.measures.arrays import Ints
from pollex.selection.pool import Pool, choose_cheapest_rubrics_step_by_step

ALPHAS = (0.0, 0.1, 0.3, 1.0, 3.0)
"""From correctness alone to mostly sharpness: both terms are of the order of 0.1."""


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:  # noqa: ARG001 - the contract of policies
    """Add the rubric that minimizes `−LC/(10·|R|) + α·LS`, until the budgets are used."""
    return choose_cheapest_rubrics_step_by_step(pool, lambda chosen: pool.losses(chosen, alpha))
