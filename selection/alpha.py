"""How much sharpness should weigh, and by which policy: by cross-validation over the training conversations.

Source: Biyani et al. 2024 ("best average performing" α over 5 folds). What performs is the held-out AUC: it uses every
pair of a fold's conversations, where accuracy at θ turns on the few that lie near θ and moves with the fold's θ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pollex.errors import BadLabels
from pollex.selection.losses import RESOLUTION, Bools, Floats, Ints
from pollex.selection.metrics import auc
from pollex.selection.policies import ALPHAS, policy_named
from pollex.selection.pool import Budget, Pool

BEST = "best"
"""Not a policy: the one of `CONTENDERS` that does best on the data at hand."""

CONTENDERS = ("correctness", "greedy", "separation", "brute_force")
"""What `BEST` tries; of equals the first."""


@dataclass(frozen=True)
class AlphaScore:
    """How one policy and α did: mean and standard deviation of held-out AUC over the folds.

    Attributes:
        deviation: None for one fold.
    """

    policy: str
    alpha: float
    mean: float
    deviation: float | None
    folds: int


@dataclass(frozen=True)
class AlphaChoice:
    """The policy and α that did best, and all of them.

    Attributes:
        table: In the order of the grids.
        held_out: NetSAT of each conversation by the rubrics chosen without its fold `[conversation]`: what
            a probability is fitted on, as scores of conversations that took part in the choice are too good.
    """

    policy: str
    alpha: float
    table: tuple[AlphaScore, ...]
    held_out: Floats


def grids_of(policy: str) -> dict[str, tuple[float, ...]]:
    """What cross-validation tries for a policy, or for `BEST`: values of α by policy.

    Raises:
        WrongUse: There is no such policy.
    """
    names = CONTENDERS if policy == BEST else (policy,)
    for name in names:
        policy_named(name, (BEST,))
    return {name: ALPHAS[name] for name in names}


def choose_alpha(
    values: Floats,
    positive: Bools,
    sat: Bools,
    ids: Sequence[str],
    budget: Budget,
    folds: Ints,
    grids: Mapping[str, Sequence[float]],
    seed: int = 0,
) -> AlphaChoice:
    """Choose policy and α by selection without each fold, measured on that fold.

    Args:
        values: Signed evals `[conversation, rubric]`.
        positive: Labels `[conversation]`.
        sat: Kinds `[rubric]`.
        ids: Of the rubrics.
        budget: SAT and DSAT.
        folds: Number of each conversation's fold `[conversation]`; a fold of one class has no AUC and is left out of
            the means.
        grids: Values of α to try, by policy; see `grids_of`.
        seed: Of policies that draw; all that are compared draw alike.

    Raises:
        BadLabels: A fold leaves one class to learn from, or no fold has both classes.
        WrongUse: There is no such policy.
    """
    values, positive, folds = np.asarray(values, float), np.asarray(positive, bool), np.asarray(folds)
    tried = [(policy, alpha) for policy, alphas in grids.items() for alpha in alphas]
    held_out = np.empty((len(tried), len(values)))
    aucs: list[list[float]] = []
    for fold in np.unique(folds):
        out = folds == fold
        pool = Pool.of(values[~out], positive[~out], sat, ids, budget)  # shared: the first steps of several α are alike
        for row, (policy, alpha) in enumerate(tried):
            chosen = policy_named(policy)(pool, alpha, np.random.default_rng([seed, int(fold)]))
            held_out[row, out] = values[np.ix_(out, np.sort(chosen))].sum(1)
        if 0 < positive[out].sum() < out.sum():
            aucs.append([auc(scores[out], positive[out]) for scores in held_out])
    if not aucs:
        raise BadLabels("no fold has conversations of both labels", remedy="use fewer folds, or stratify them")
    table = tuple(_scored(*one, column) for one, column in zip(tried, zip(*aucs, strict=True), strict=True))
    row = _best(table, list(grids))
    return AlphaChoice(table[row].policy, table[row].alpha, table, held_out[row])


def _best(table: Sequence[AlphaScore], policies: Sequence[str]) -> int:
    """Row of the highest mean; of equals the earlier policy and then the smaller α."""
    highest = max(score.mean for score in table)
    ties = [row for row, score in enumerate(table) if score.mean >= highest - RESOLUTION]
    return min(ties, key=lambda row: (policies.index(table[row].policy), table[row].alpha))


def _scored(policy: str, alpha: float, aucs: Sequence[float]) -> AlphaScore:
    deviation = float(np.std(aucs, ddof=1)) if len(aucs) > 1 else None
    return AlphaScore(policy, alpha, float(np.mean(aucs)), deviation, len(aucs))
