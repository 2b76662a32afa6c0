"""RUBICON without sharpness: greedy with α = 0. Source: Biyani et al. 2024, the comparison of policies."""

from __future__ import annotations

import numpy as np

from pollex.selection.pool import Pool, Selection, walk


def select(pool: Pool, alpha: float, rng: np.random.Generator) -> Selection:  # noqa: ARG001 - the contract of policies
    """Add the rubric that separates the class means most, whatever α says."""
    return walk(pool, 0.0)
