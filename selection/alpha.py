"""Choice of α, the weight of sharpness, by cross-validation with the chosen policy.

Source: Biyani et al. 2024 ("best average performing" α over 5 folds). What performs is the held-out
AUC: it uses every pair of a fold's conversations, where accuracy at θ turns on the few that lie
near θ and moves with the fold's θ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.errors import BadLabels
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import compute_auc
from pollex.selection.losses import SCORE_TIE_TOLERANCE, AlphaScore
from pollex.selection.netsat import sum_rubric_values
from pollex.selection.policies import (
    CROSS_VALIDATED_ALPHAS_BY_POLICY,
    DEFAULT_SELECTION_POLICY_NAME,
    get_selection_policy,
)
from pollex.selection.pool import MaxRubricsBySide, Pool


@dataclass(frozen=True)
class AlphaChoice:
    """The α that did best, and all of them.

    Attributes:
        table: In the order of the grid.
        held_out: NetSAT of each conversation by the rubrics chosen without its fold
            `[conversation]`: what a probability is fitted on, as scores of conversations that took
            part in the choice are too good.
    """

    alpha: float
    table: tuple[AlphaScore, ...]
    held_out: Floats


def choose_alpha_by_cross_validation(
    values: Floats,
    positive: Bools,
    sat: Bools | Ints,
    ids: Sequence[str],
    budget: MaxRubricsBySide,
    folds: Ints,
    policy: str = DEFAULT_SELECTION_POLICY_NAME,
    alphas: Sequence[float] | None = None,
    seed: int = 0,
) -> AlphaChoice:
    """Choose α by selection without each fold, measured on that fold.

    Args:
        values: Signed evals `[conversation, rubric]`.
        positive: Labels `[conversation]`.
        sat: Kinds `[rubric]`: true for SAT, or the number of each rubric's budget.
        ids: Of the rubrics.
        budget: One number a kind.
        folds: Number of each conversation's fold `[conversation]`; a fold of one class has no AUC
            and is left out of the means.
        alphas: The grid; None for the policy's own.
        seed: Of a policy that draws; every α gets the same draws.

    Raises:
        BadLabels: A fold leaves one class to learn from, or no fold has both classes.
        WrongUse: There is no such policy.
    """
    choose = get_selection_policy(policy)
    alphas = CROSS_VALIDATED_ALPHAS_BY_POLICY[policy] if alphas is None else alphas
    values = np.asarray(values, float)
    positive = np.asarray(positive, bool)
    folds = np.asarray(folds)
    # scores by each α `[alpha, conversation]`, of rubrics chosen without the fold
    held_out = np.empty((len(alphas), len(values)))
    aucs: list[list[float]] = []
    for fold in np.unique(folds):
        out = folds == fold
        # shared: the first steps of several α are alike
        pool = Pool.of(values[~out], positive[~out], sat, ids, budget)
        for row, alpha in enumerate(alphas):
            chosen = choose(pool, alpha, np.random.default_rng([seed, int(fold)]))
            held_out[row, out] = sum_rubric_values(values[np.ix_(out, np.sort(chosen))])
        if 0 < positive[out].sum() < out.sum():
            # a fold of one class has no AUC
            aucs.append([compute_auc(scores[out], positive[out]) for scores in held_out])

    if not aucs:
        raise BadLabels(
            "no fold has conversations of both labels",
            hint="use fewer folds, or stratify them",
        )

    alpha_scores = []
    for alpha, auc_of_seeds in zip(alphas, zip(*aucs, strict=True), strict=True):
        alpha_scores.append(
            AlphaScore(
                alpha,
                float(np.mean(auc_of_seeds)),
                float(np.std(auc_of_seeds, ddof=1)) if len(auc_of_seeds) > 1 else None,
                len(auc_of_seeds),
            )
        )
    table = tuple(alpha_scores)
    # of αs that do equally well, the smallest
    best = max(score.mean_auc for score in table)
    row = min(
        (row for row, score in enumerate(table) if score.mean_auc >= best - SCORE_TIE_TOLERANCE),
        key=lambda row: alphas[row],
    )
    return AlphaChoice(alphas[row], table, held_out[row])
