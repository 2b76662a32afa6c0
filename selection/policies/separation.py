"""Correctness over spread: a rubric's gain in class distance relative to noise.

Two rubrics that say the same widen the gap between the class means twice and the spread twice, too;
two that say different things widen the spread by less. LC knows only the gap. With α = 1 the ratio
is Fisher's linear discriminant with weights of 0 and 1; with α = 0 it is LC; a small log wants
something in between, as its covariances are noise.

Source: Fisher 1936, doi:10.1111/j.1469-1809.1936.tb02137.x; the covariance is drawn to its diagonal
as in Schäfer and Strimmer 2005, target D, doi:10.2202/1544-6115.1175, by a fixed share.
"""

import numpy as np

from pollex.measures.arrays import Floats, Ints
from pollex.selection.losses import MAX_EVAL_DIFFERENCE
from pollex.selection.pool import Pool, choose_cheapest_rubrics_step_by_step

ALPHAS = (0.25, 0.5, 0.75)
"""Exponents of the spread. At 1, what a log of 150 says of its covariances is taken for true, and held-out AUC falls
without cross-validation of so few seeing it; at 0 it is correctness alone."""

COVARIANCE_SHRINKAGE = 0.2
"""Share of the covariances that is taken away."""

MIN_SCORE_DEVIATION = MAX_EVAL_DIFFERENCE / 100
"""The least spread: a set that separates by chance on few conversations is not infinitely good."""


def choose(pool: Pool, alpha: float, rng: np.random.Generator) -> Ints:  # noqa: ARG001 - the contract of policies
    """Add the rubric that maximizes `LC / s^α`, s the within-class standard deviation."""
    # distance between the class means, and variances within the classes
    gaps = pool.evals[0].mean(1) - pool.evals[1].mean(1)
    covariance = compute_within_class_covariances(pool)
    variances = np.diag(covariance)

    def costs(chosen: frozenset[int]) -> Floats:
        candidates = pool.open(chosen)
        inside = np.array(sorted(chosen), dtype=np.intp)
        # of the set with each candidate in it `[candidate]`
        correctness = gaps[inside].sum() + gaps[candidates]
        shared = covariance[np.ix_(inside, candidates)].sum(0)
        variance = covariance[np.ix_(inside, inside)].sum() + 2 * shared + variances[candidates]
        spread = np.sqrt(np.maximum(variance, MIN_SCORE_DEVIATION**2)) ** alpha
        # Where the wrong class scores higher, less of it is better, and so is less spread.
        worth: Floats = np.where(
            correctness > 0,
            correctness / spread,
            correctness * spread,
        )

        return -worth

    return choose_cheapest_rubrics_step_by_step(pool, costs)


def compute_within_class_covariances(pool: Pool) -> Floats:
    """Compute pooled and shrunk within-class covariances of evals `[rubric, rubric]`."""
    centered = []
    for evals in pool.evals:
        centered.append(evals - evals.mean(1, keepdims=True))

    freedom = max(sum(evals.shape[1] for evals in pool.evals) - 2, 1)
    covariance: Floats = (centered[0] @ centered[0].T + centered[1] @ centered[1].T) / freedom
    return np.asarray(
        (1 - COVARIANCE_SHRINKAGE) * covariance
        + COVARIANCE_SHRINKAGE * np.diag(np.diag(covariance))
    )
