"""A starter set learned elsewhere, combined with one's own rubrics for small logs.

Its rubrics go into the model of the probability beside one's own. What either side counts for are
the weights of a logistic function of both NetSATs, each as z, drawn towards .7 each, so that ten
labels are no reason to trust one of the two alone; and the starter's weight shrinks as far as one's
own labels speak against it.
"""

from collections.abc import Mapping

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.selection.threshold import compute_logistic

STARTER_PREFIX = "starter-"
"""Before the ids of a starter's rubrics: a set of one's own may have found the same."""

STARTER_PRIOR_WEIGHT = 0.7
STARTER_WEIGHT_PRIOR_PRECISION = 10.0
INTERCEPT_PRIOR_PRECISION = 1e-6
"""Precision of the intercept's prior: none to speak of."""

MAX_NEWTON_STEPS = 50


def standardize_values(values: Floats) -> Floats:
    """Return values as z; zeros where they have no spread."""
    return np.asarray(
        (values - values.mean()) / (values.std() or 1.0),
        dtype=np.float64,
    )


def fit_starter_weights(
    set_netsats: Floats, starter: Floats, positive: Bools
) -> tuple[float, float]:
    """Fit weights, averaged over two models: the starter says something, and it says nothing.

    Both are logistic with weights drawn towards .7 with precision 10, and equally likely
    beforehand. The labels weigh them by Laplace's approximation of their evidence. A starter that
    points the wrong way is never turned round.

    Source: MacKay 2003, "Information Theory, Inference, and Learning Algorithms", chapters 27 and
        28.

    Args:
        set_netsats: z of the set's NetSAT, of conversations that it was chosen without `[conversation]`.
        starter: z of the starter's `[conversation]`.
    """
    alone, evidence_alone = _fit_logistic(set_netsats[:, None], positive)
    both, evidence_both = _fit_logistic(np.column_stack([set_netsats, starter]), positive)
    # how probable it is, by both models' evidence, that the starter says something
    says = float(compute_logistic(np.array(evidence_both - evidence_alone)))
    return float(says * both[0] + (1 - says) * alone[0]), max(0.0, float(says * both[1]))


def _fit_logistic(z: Floats, positive: Bools) -> tuple[Floats, float]:
    """Fit a logistic model by Newton's method; return weights with the intercept last, and the log evidence.

    Args:
        z: Both sets' z, or one's `[conversation, set]`.
    """
    # the intercept is the last column, and hardly held by its prior
    x = np.column_stack([z, np.ones(len(z))])
    toward, precision = (
        np.append(np.full(z.shape[1], value), end)
        for value, end in (
            (STARTER_PRIOR_WEIGHT, 0),
            (STARTER_WEIGHT_PRIOR_PRECISION, INTERCEPT_PRIOR_PRECISION),
        )
    )
    beta = toward.copy()
    for _ in range(MAX_NEWTON_STEPS):
        p = compute_logistic(x @ beta)
        # of the log posterior, at these weights
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(
            curvature,
            x.T @ (positive - p) - precision * (beta - toward),
        )
        # a step is bounded, so that classes that are far apart don't throw it off
        beta += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break

    # log evidence by Laplace: likelihood and prior at the peak, less half the log of the curvature
    likelihood = -np.logaddexp(0, np.where(positive, -1, 1) * (x @ beta)).sum()
    prior = 0.5 * (np.log(precision) - precision * (beta - toward) ** 2).sum()
    return beta, float(likelihood + prior - 0.5 * np.linalg.slogdet(curvature)[1])


def prefix_rubric_ids_of_starter(counts: Mapping[str, object]) -> dict[str, object]:
    """Return values by rubric under ids of a starter."""
    return {STARTER_PREFIX + id_: value for id_, value in counts.items()}
