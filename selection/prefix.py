"""How far an order of rubrics is worth following, by the log-loss of conversations that did not see it.

Greedy policies go on until their budget is used: with answers that mean nothing they take what
suits these labels by chance.
"""

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.selection.threshold import compute_logistic

MAX_NEWTON_STEPS = 25
MIN_GAIN_STANDARD_ERRORS = 2.0
"""Standard errors of the gain that stand for more than chance."""

SLOPE_RIDGE = 1e-2
"""Keeps the slope finite where scores part the classes."""


def compute_log_losses_of_logistic_fit(scores: Floats, positive: Bools) -> Floats:
    """Compute the log-loss of each conversation by a logistic curve over its score `[conversation]`.

    The curve never falls: scores that point the wrong way say as much as none.

    Args:
        scores: Of rubrics that did not see the conversation, less their threshold `[conversation]`.
    """
    # the log-loss of the base rate alone
    share = positive.mean()
    alone = np.where(positive, -np.log(share), -np.log1p(-share))
    if (spread := scores.std()) == 0:
        return np.asarray(alone)

    # Newton's method for slope and intercept, with a little ridge on the slope
    x = np.column_stack([(scores - scores.mean()) / spread, np.ones(len(scores))])
    beta = np.array([0.0, np.log(share / (1 - share))])
    for _ in range(MAX_NEWTON_STEPS):
        p = compute_logistic(x @ beta)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag([SLOPE_RIDGE, 1e-9])
        step = np.linalg.solve(
            curvature,
            x.T @ (positive - p) - np.array([SLOPE_RIDGE, 0.0]) * beta,
        )
        beta += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break

    if beta[0] <= 0:
        return np.asarray(alone)
    return np.asarray(np.logaddexp(0, np.where(positive, -1, 1) * (x @ beta)))


def find_best_rubric_list_length(losses: Floats, *, instead: bool) -> int:
    """Return the length with the least mean loss; 0 where labels don't bear out that it is better than none.

    Args:
        losses: Of each length from 0 on `[length, conversation]`.
        instead: Whether there is something else where nothing is followed: then it takes a gain of
            two standard errors.
    """
    best = int(np.argmin(losses.mean(axis=1)))
    # paired gains over following nothing `[conversation]`
    gain = losses[0] - losses[best]
    if instead:
        least = MIN_GAIN_STANDARD_ERRORS * gain.std(ddof=1) / len(gain) ** 0.5
    else:
        least = 0.0

    return best if gain.mean() > least else 0
