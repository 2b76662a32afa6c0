"""Upper confidence bound bandit: arms are rubrics, rewards their scores on random batches.

Sources: Biyani et al. 2024, the comparison of policies; Auer, Cesa-Bianchi and Fischer 2002, UCB1,
doi:10.1023/A:1013689704352.
"""

import numpy as np

from pollex.measures.arrays import Floats, Ints
from pollex.selection.pool import Pool, choose_rubrics_of_most_worth

CONVERSATIONS_A_PULL = 16
"""Conversations that a pull looks at."""

BANDIT_ROUNDS = 50
"""Rounds after the first, in which every arm is pulled once."""

EXPLORATION_WEIGHT = 1.0
"""Weight of the bound in evals: about the standard deviation of a batch's mean Likert value."""


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:  # noqa: ARG001 - the contract of policies
    """Play the bandit, then take the rubrics with the largest mean reward."""
    return choose_rubrics_of_most_worth(pool, estimate_rubric_rewards_by_bandit(pool, rng))


def estimate_rubric_rewards_by_bandit(pool: Pool, rng: np.random.Generator) -> Floats:
    """Return mean reward of each rubric, in evals a conversation `[rubric]`.

    Each round pulls, of each kind, as many arms as its budget: those with the highest bound.
    """
    everyone = np.arange(len(pool.kinds))
    # every arm is pulled once
    pulls = np.ones(len(everyone))
    total = _draw_rewards_of_rubrics(pool, everyone, rng)
    for played in range(1, BANDIT_ROUNDS + 1):
        bounds = total / pulls + EXPLORATION_WEIGHT * np.sqrt(2 * np.log(1 + played) / pulls)
        # of each kind, as many as its budget
        order = np.lexsort((pool.rank, -bounds))
        arms = np.concatenate(
            [order[pool.kinds[order] == kind][:most] for kind, most in enumerate(pool.budget)]
        )
        total[arms] += _draw_rewards_of_rubrics(pool, arms, rng)
        pulls[arms] += 1

    return total / pulls


def _draw_rewards_of_rubrics(pool: Pool, arms: Ints, rng: np.random.Generator) -> Floats:
    positive, negative = pool.evals
    size = positive.shape[1] + negative.shape[1]
    # conversations of both classes, numbered through
    batch = rng.choice(size, min(CONVERSATIONS_A_PULL, size), replace=False)
    thumbs_up = batch[batch < positive.shape[1]]
    thumbs_down = batch[batch >= positive.shape[1]] - positive.shape[1]
    scores: Floats = positive[np.ix_(arms, thumbs_up)].sum(1) + negative[
        np.ix_(arms, thumbs_down)
    ].sum(1)

    return scores / len(batch)
