"""Ranks all rubrics by the bandit's reward over all data.

Source: Biyani et al. 2024, the comparison of policies.
"""

import numpy as np

from pollex.measures.arrays import Ints
from pollex.selection.pool import Pool, choose_rubrics_of_most_worth


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:  # noqa: ARG001 - the contract of policies
    """Choose the rubrics with the largest summed scores, ignoring labels."""
    return choose_rubrics_of_most_worth(pool, pool.evals[0].sum(1) + pool.evals[1].sum(1))
