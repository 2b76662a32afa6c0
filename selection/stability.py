"""Stability of the selection on bootstrap resamples of the training conversations.

Source: Meinshausen and Bühlmann 2010, stability selection, doi:10.1111/j.1467-9868.2010.00740.x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import require_both_classes
from pollex.selection.policies import DEFAULT, policy_named
from pollex.selection.pool import Budget, Pool

RESAMPLES = 200


def stability(
    values: Floats,
    positive: Bools,
    sat: Bools | Ints,
    ids: Sequence[str],
    budget: Budget,
    alpha: float,
    rng: np.random.Generator,
    policy: str = DEFAULT,
    resamples: int = RESAMPLES,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """Return the share of resamples in which each rubric is chosen `[rubric]`.

    Each class is resampled by itself.

    Args:
        values: Signed evals `[conversation, rubric]`.
        positive: Labels `[conversation]`.
        sat: Kinds `[rubric]`: true for SAT, or the number of each rubric's budget.
        ids: Of the rubrics.
        budget: One number a kind.
        policy: Name of the policy.
        progress: Told resamples done and wanted, after each.

    Raises:
        BadLabels: All labels are alike.
        BadRubrics: Shapes disagree, ids repeat, or a value isn't a number.
        WrongUse: There is no such policy.
    """
    values, positive = np.asarray(values, float), np.asarray(positive, bool)
    require_both_classes(positive)
    choose, chosen = policy_named(policy), np.zeros(len(sat))
    for done in range(1, resamples + 1):
        drawn = _resample(positive, rng)
        pool = Pool.of(values[drawn], positive[drawn], sat, ids, budget)
        chosen[choose(pool, alpha, rng)] += 1
        if progress:
            progress(done, resamples)
    return chosen / resamples


def _resample(positive: Bools, rng: np.random.Generator) -> Ints:
    classes = np.flatnonzero(positive), np.flatnonzero(~positive)
    return np.concatenate([rng.choice(members, len(members)) for members in classes])
