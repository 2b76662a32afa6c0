"""How much of what a plain method finds is recovered, how alike rubrics are, and what more labels are worth."""

from collections.abc import Mapping, Sequence

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import auc_statistic
from pollex.measures.intervals import Figure, Measure, Statistic, measured, ratio

RESAMPLES = 500
GUESSING = 0.5


def recovered(ours: Floats, plain: Floats, positive: Bools, unit: Ints, rng: np.random.Generator) -> Figure:
    """Compute (AUC − ½) of our scores over (AUC − ½) of a plain method's.

    Args:
        ours: `[conversation]`.
        plain: `[conversation]`.
        positive: `[conversation]`.
        unit: Number of what belongs together `[conversation]`.
    """
    if positive.all() or not positive.any():
        return Figure(None, n=len(positive), undefined="there is only one class")
    order, (own, other) = _statistics([ours, plain], positive)
    found = measured({"plain": Measure(other)}, unit[order], rng, RESAMPLES)["plain"]
    if found.low is None or found.low <= GUESSING:
        return Figure(None, n=len(positive), undefined="the plain method itself is not surely better than guessing")
    share = Measure(lambda weights: ratio(own(weights) - GUESSING, other(weights) - GUESSING))
    return measured({"share": share}, unit[order], rng, RESAMPLES)["share"]


def _statistics(scores: Sequence[Floats], positive: Bools) -> tuple[Ints, list[Statistic]]:
    order = np.argsort(~positive, kind="stable")
    return order, [auc_statistic(one[order], int(positive.sum())) for one in scores]


def mean_correlation(values: Floats, unit: Ints, rng: np.random.Generator) -> Figure:
    """Compute the mean of Pearson's correlation over all pairs of columns `[conversation, rubric]`."""
    first, second = np.triu_indices(values.shape[1], 1)
    if not len(first):
        return Figure(None, n=len(values), undefined="there are fewer than two rubrics")
    products, squares = values[:, first] * values[:, second], values**2

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        mean = weights @ values / total
        spread = np.sqrt(np.maximum(weights @ squares / total - mean**2, 0))
        together = weights @ products / total - mean[:, first] * mean[:, second]
        both = spread[:, first] * spread[:, second]
        found: Floats = np.divide(together, both, out=np.zeros_like(both), where=both > 1e-9)
        return np.asarray(found.mean(axis=1))

    return measured({"mean": Measure(statistic)}, unit, rng, RESAMPLES)["mean"]


def learning_curve(
    scores: Mapping[int, Sequence[Floats]], positive: Bools, unit: Ints, rng: np.random.Generator, more: int
) -> tuple[dict[int, Figure], Figure]:
    """Measure how AUC grows with labels, and go on by AUC = a + b·ln(labels), fitted by least squares.

    Args:
        scores: By number of labels, of each draw `[conversation]`; all held-out.
        positive: `[conversation]`.
        unit: Number of what belongs together `[conversation]`.
        more: Further labels to tell the worth of.

    Returns:
        By number of labels, the mean AUC over draws of these; and what further labels are worth in AUC.
    """
    order = np.argsort(~positive, kind="stable")
    draws = {size: _statistics(found, positive)[1] for size, found in scores.items()}

    def reached(weights: Floats) -> Floats:
        return np.stack([np.mean([one(weights) for one in each], axis=0) for each in draws.values()])

    sizes = np.array(list(scores), float)
    centered = np.log(sizes) - np.log(sizes).mean()
    step = np.log((sizes[-1] + more) / sizes[-1]) / (centered**2).sum()
    measures = {
        str(size): Measure(lambda weights, each=each: np.mean([one(weights) for one in each], axis=0))  # type: ignore[misc]
        for size, each in draws.items()
    }
    found = measured(
        {**measures, "more": Measure(lambda weights: step * (centered @ reached(weights)))},
        unit[order],
        rng,
        RESAMPLES,
    )
    return {size: found[str(size)] for size in scores}, found["more"]
