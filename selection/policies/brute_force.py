"""Rank all rubrics by the bandit's reward over all data. Source: Biyani et al. 2024, the comparison of policies."""

from __future__ import annotations

import numpy as np

from pollex.selection.losses import Floats
from pollex.selection.pool import Pool, Selection, walk


def select(pool: Pool, alpha: float, rng: np.random.Generator) -> Selection:  # noqa: ARG001 - the contract of policies
    """Add the rubric with the largest score summed over all conversations, whatever their labels."""
    rewards = _summed_scores(pool)
    return walk(pool, alpha, lambda candidates, _: -rewards[candidates])


def _summed_scores(pool: Pool) -> Floats:
    scores: Floats = pool.evals[0].sum(1) + pool.evals[1].sum(1)
    return scores
