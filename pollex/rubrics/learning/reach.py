"""How far a set reaches: what is measured of it beside its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import block_ids, folds
from pollex.errors import BadLabels
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure
from pollex.measures.reach import learning_curve, mean_correlation, recovered
from pollex.rubrics.learning.baselines import WORDS, Plain
from pollex.rubrics.learning.choice import FOLDS, both_lists, candidates
from pollex.rubrics.learning.comparison import FittedThumbs
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.weigh import Candidates
from pollex.rubrics.reach import MORE, CurvePoint, Reach
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.worth import share_of
from pollex.selection.policies import policy_named
from pollex.selection.pool import Pool

SHARES = (0.25, 0.5, 0.75)
"""Of the labels, chosen with so many."""
DRAWS = 8
FEWEST = 5
"""Labels of a class below which nothing is chosen."""
SIDES: tuple[Polarity, ...] = ("sat", "dsat")


def reach_of(
    material: Material,
    fitted: FittedThumbs,
    rubrics: Sequence[ChosenRubric],
    held_out: Sequence[Conversation],
    truth: Bools,
    plain: Plain,
    selection: dict[str, Any],
    pool_values: Floats | None,
) -> Reach | None:
    """Measure how far a set reaches; None where nothing was held out.

    Args:
        truth: Labels of held-out conversations `[conversation]`.
        pool_values: Of the whole pool `[conversation, rubric]`, those of `GivenAnswers.answered` and of `candidates`;
            None where they would have to be paid for.
    """
    if not held_out:
        return None
    table, chosen, unit = material.table, material.chosen, block_ids(held_out)
    rng = np.random.default_rng([material.settings.seed, 6])
    values = table.matrix(held_out, chosen)[0]
    leads = np.array([rubric.headlined and rubric.polarity == "dsat" for rubric in rubrics])
    covered = table.held(held_out, chosen)[:, leads].any(axis=1)
    good = fitted.model.probability(material.answers(held_out)) >= 0.5
    beside = strongest(plain, material)
    netsat = values.sum(axis=1)
    curve, more = curve_of(candidates(material), pool_values, netsat, truth, unit, material, selection["alpha"])
    return Reach(
        coverage=share_of(int((covered & ~truth).sum()), int((~truth).sum())),
        false_alarms=share_of(int((covered & truth).sum()), int(truth.sum())),
        recall_up=share_of(int((good & truth).sum()), int(truth.sum())),
        recall_down=share_of(int((~good & ~truth).sum()), int((~truth).sum())),
        beside=beside,
        recovered=recovered(netsat, plain.scores[beside][1], truth, unit, rng),
        correlation={
            side: mean_correlation(values[:, [r.polarity == side for r in rubrics]], unit, rng) for side in SIDES
        },
        curve=curve,
        more=more,
    )


def strongest(plain: Plain, material: Material) -> str:
    """Return the strongest plain method; words where there are too few labels to cross-validate."""
    try:
        return plain.strongest(folds(plain.training, FOLDS, material.settings.seed))
    except BadLabels:
        return WORDS


def curve_of(
    pool: Candidates,
    pool_values: Floats | None,
    netsat: Floats,
    truth: Bools,
    unit: Ints,
    material: Material,
    alpha: float,
) -> tuple[tuple[CurvePoint, ...], Figure]:
    """Measure the AUC of choices with fewer labels; without a curve, the figure says why."""
    labels = pool.labels
    if why := why_no_curve(material, pool_values, labels, truth):
        return (), Figure(None, n=len(truth), undefined=why)
    assert pool_values is not None, "there is no curve without"
    rng = np.random.default_rng([material.settings.seed, 7])
    choose, budget = policy_named(material.settings.policy), both_lists(material.settings.budget, pool.kinds)
    scores: dict[int, list[Floats]] = {}
    for share in SHARES:
        for rows in drawn(labels, share, rng):
            part = Pool.of(pool.values[rows], labels[rows], pool.kinds, pool.ids, budget)
            chosen = choose(part, alpha, rng)
            scores.setdefault(len(rows), []).append(pool_values[:, chosen].sum(axis=1))
    scores[len(labels)] = [netsat]
    curve = learning_curve(scores, truth, unit, rng, MORE)
    return tuple(CurvePoint(labels=size, auc=auc) for size, auc in curve.points.items()), curve.more


def why_no_curve(material: Material, pool_values: Floats | None, labels: Bools, truth: Bools) -> str:
    """Say why there is no curve; empty where there can be one."""
    if pool_values is None:
        if not material.pool:
            return "rubrics were given, and none were chosen"
        if material.settings.method == "spur":
            return "SPUR revises one set, and chooses none"
        if not material.settings.resamples:
            return "resampling was left out"
        return "a model would have to be paid for answering the rubrics that were not chosen"
    if SHARES[0] * min(labels.sum(), (~labels).sum()) < FEWEST:
        return f"a quarter of the labels has fewer than {FEWEST} of a class"
    if truth.all() or not truth.any():
        return "only one class was held out"
    return ""


def drawn(labels: Bools, share: float, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield draws of a share of each class, without replacement."""
    classes = np.flatnonzero(labels), np.flatnonzero(~labels)
    for _ in range(DRAWS):
        yield np.concatenate([rng.choice(one, round(share * len(one)), replace=False) for one in classes])
