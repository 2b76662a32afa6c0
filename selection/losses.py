"""The losses of RUBICON for all candidates: correctness LC and sharpness LS.

Source: Biyani et al. 2024, section on selecting rubrics; the choices of the package docstring.

Scores come as `[set, conversation]`, one row a rubric set, positive and negative conversations
apart. A row's scores are binned to the grid of its own observed range, so that one count and one
running sum give both precision curves at every threshold, without a sort.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import require_both_classes
from pollex.selection.netsat import add_candidate_values_to_scores

MAX_EVAL_DIFFERENCE = 10.0
"""How far apart two evals of one rubric can be: Likert values run from 0 to 10."""

THRESHOLD_GRID_POINTS = 101
"""Thresholds from the lowest to the highest score of a rubric set."""

SCORE_TIE_TOLERANCE = 1e-9
"""Below this, two losses are tied, scores are constant, and a score lies on its threshold (in grid steps)."""

MAX_SCORES_A_BLOCK = 1 << 18
"""Scores handled at once: 2 MB, so that the passes over them stay in the cache."""


@dataclass(frozen=True)
class AlphaScore:
    """Mean and standard deviation of held-out AUC for one α; no deviation of one fold."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    alpha: float
    mean_auc: float
    deviation: float | None
    folds: int


class LossTerms(NamedTuple):
    """LC and LS, each `[set]`.

    LC is in score units, larger is better; LS is an error in 0 … 2.
    """

    correctness: Floats
    sharpness: Floats

    def loss(self, alpha: ArrayLike, size: int) -> Floats:
        """Compute `−LC/(10·size) + α·LS`: `[set]`, or `[alpha, set]` for several α.

        Args:
            size: |R|, how many rubrics each set has.
        """
        return (
            -self.correctness / (MAX_EVAL_DIFFERENCE * size)
            + np.asarray(alpha, float)[..., None] * self.sharpness
        )


class PrecisionCurves(NamedTuple):
    """Precision curves and their targets on the grid, one row for each rubric set.

    Attributes:
        thresholds: `[set, grid]`, from each set's lowest to its highest score.
        plus: Prec+ `[set, grid]`: the share of positives among those over.
        minus: Prec− `[set, grid]`: the share of negatives among those at or under.
        target_plus: The tanh curve that Prec+ is held against, `[set, grid]`.
        target_minus: Likewise for Prec−.
        correctness: LC `[set]`.
        theta: θ_c `[set]`.
        spread: s, the pooled standard deviation of both classes `[set]`.
    """

    thresholds: Floats
    plus: Floats
    minus: Floats
    target_plus: Floats
    target_minus: Floats
    correctness: Floats
    theta: Floats
    spread: Floats

    @property
    def sharpness(self) -> Floats:
        """LS `[set]`: the mean squared error of both curves over the grid."""
        errors = self.plus - self.target_plus, self.minus - self.target_minus
        total = _sum_squares_of_rows(errors[0]) + _sum_squares_of_rows(errors[1])
        return np.divide(total, self.plus.shape[1])


def split_rubric_values_by_class(values: Floats, positive: Bools) -> tuple[Floats, Floats]:
    """Transpose evals `[conversation, rubric]` and split them into positives and negatives."""
    positives = np.ascontiguousarray(values[positive].T, dtype=float)
    negatives = np.ascontiguousarray(values[~positive].T, dtype=float)
    return positives, negatives


def compute_losses_with_each_candidate(
    base: tuple[Floats, Floats],
    evals: tuple[Floats, Floats],
    rows: Ints,
    grid: int = THRESHOLD_GRID_POINTS,
) -> LossTerms:
    """Compute LC and LS of a set with each candidate added in turn.

    Args:
        base: Scores of the set so far, each `[conversation]`.
        evals: Evals of the pool, each `[rubric, conversation]`.
        rows: Which rubrics are candidates `[candidate]`.
    """
    # some candidates at a time, so that their scores stay in the cache
    terms = LossTerms(np.empty(len(rows)), np.empty(len(rows)))
    for block in _iterate_row_blocks(len(rows), len(base[0]) + len(base[1])):
        positive, negative = (
            add_candidate_values_to_scores(scores, eval_[rows[block]])
            for eval_, scores in zip(evals, base, strict=True)
        )
        curves = compute_precision_curves(positive, negative, grid)
        terms.correctness[block] = curves.correctness
        terms.sharpness[block] = curves.sharpness

    return terms


def compute_midpoint_of_class_means(scores: Floats, positive: Bools) -> float:
    """Compute θ_c: half way between the mean scores of the two classes.

    Args:
        scores: `[conversation]`.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    return float(scores[positive].mean() + scores[~positive].mean()) / 2


def compute_precision_curves(
    positive: Floats, negative: Floats, grid: int = THRESHOLD_GRID_POINTS
) -> PrecisionCurves:
    """Compute precision curves of rubric sets with targets, LC, θ_c and s.

    Args:
        positive: Scores of the positive conversations `[set, positive conversation]`.
        negative: Likewise of the negative ones.
    """
    # range of each set's scores `[set]`; a range of nothing but rounding is none
    classes = positive, negative
    low = np.minimum(positive.min(1), negative.min(1))
    span = np.maximum(positive.max(1), negative.max(1)) - low
    span[span <= SCORE_TIE_TOLERANCE] = 0.0
    # θ_c, and the pooled standard deviation within the classes
    means = positive.mean(1), negative.mean(1)
    theta = (means[0] + means[1]) / 2
    # two conversations have no spread
    freedom = max(positive.shape[1] + negative.shape[1] - 2, 1)
    of_classes = []
    for scores, mean in zip(classes, means, strict=True):
        of_classes.append(_sum_squares_of_rows(scores - mean[:, None]))

    spread = np.sqrt((of_classes[0] + of_classes[1]) / freedom)
    # conversations at or under each threshold, and over it `[class, set, grid]`
    under = np.stack(
        [_count_scores_up_to_thresholds(scores, low, span, grid) for scores in classes]
    )
    over = np.array([scores.shape[1] for scores in classes])[:, None, None] - under
    thresholds = low[:, None] + span[:, None] * np.linspace(0.0, 1.0, grid)
    # Prec+ `[set, grid]`, the base rate where nothing scores over a threshold
    base_rate = positive.shape[1] / (positive.shape[1] + negative.shape[1])
    total = over[0] + over[1]
    plus = np.divide(
        over[0],
        total,
        out=np.full_like(total, base_rate),
        where=total > 0,
    )
    # Nothing scores over the highest threshold, and but for constant scores something does over the
    # one before it.
    plus[:, -1] = plus[:, -2]
    # Without spread the targets are steps; a thousandth of a grid step is one, and rounding still
    # can't tip it at θ_c.
    width = np.where(
        span > 0,
        np.maximum(spread, 1e-3 * span / (grid - 1)),
        np.inf,
    )
    rise = (1 + np.tanh((thresholds - theta[:, None]) / width[:, None])) / 2

    return PrecisionCurves(
        thresholds=thresholds,
        plus=plus,
        # the lowest score is at or under every threshold: never empty
        minus=under[1] / (under[0] + under[1]),
        target_plus=base_rate + (1 - base_rate) * rise,
        target_minus=(1 - base_rate) + base_rate * (1 - rise),
        correctness=means[0] - means[1],
        theta=theta,
        spread=spread,
    )


def _iterate_row_blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, MAX_SCORES_A_BLOCK // width)
    return (slice(start, start + step) for start in range(0, rows, step))


def _count_scores_up_to_thresholds(
    scores: Floats,
    low: Floats,
    span: Floats,
    grid: int,
) -> Floats:
    # scores in grid steps above the lowest one
    per_step = np.divide(
        grid - 1,
        span,
        out=np.zeros_like(span),
        where=span > 0,
    )
    place = scores - low[:, None]
    place *= per_step[:, None]
    # Cut to a whole number, `place + 1 − ε` counts the thresholds that a score is over; each row
    # has its own bins.
    place += (np.arange(len(scores)) * grid + (1 - SCORE_TIE_TOLERANCE))[:, None]
    bins = np.bincount(place.astype(np.intp).ravel(), minlength=len(scores) * grid)

    return bins.reshape(-1, grid).cumsum(1, dtype=float)


def _sum_squares_of_rows(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
