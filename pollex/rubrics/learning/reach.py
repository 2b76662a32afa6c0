"""How far a set reaches: what is measured of it beside its scores."""

from collections.abc import Sequence

import numpy as np

from pollex.conversations.logs import positives
from pollex.conversations.splits import block_ids
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import learning_curve, recovered
from pollex.measures.correlations import mean_correlation
from pollex.measures.intervals import Figure
from pollex.rubrics.learning.baselines import Plain
from pollex.rubrics.learning.choice import candidates
from pollex.rubrics.learning.crossfit import CrossFit, Part, cross_fit
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.measured import Unseen
from pollex.rubrics.learning.weigh import Candidates, Weighed
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.worth import MORE, CurvePoint, Reach, share_of
from pollex.selection.losses import theta_c

SHARES = (0.25, 0.5, 0.75)
"""Of the labels, chosen with so many."""
DRAWS = 2
FEWEST = 5
"""Labels of a class below which nothing is chosen."""
SIDES: tuple[Polarity, ...] = ("sat", "dsat")


def reach_of(
    material: Material,
    rubrics: Sequence[ChosenRubric],
    unseen: Unseen,
    plain: Plain,
    pool_values: Floats | None,
) -> Reach | None:
    """Measure how far a set reaches; None where nothing was held out.

    Args:
        pool_values: Of the whole pool on held-out conversations `[conversation, rubric]`, those of
            `GivenAnswers.answered` and of `candidates`; None where they would have to be paid for.
    """
    if not unseen.conversations:
        return None
    truth, unit = positives(unseen.conversations), block_ids(unseen.conversations)
    rng = np.random.default_rng([material.settings.seed, 6])
    values = material.table.matrix(unseen.conversations, material.chosen)[0]
    leads = [rubric.headlined and rubric.polarity == "dsat" for rubric in rubrics]
    covered, good = unseen.held[:, leads].any(axis=1), unseen.probability >= 0.5
    pool = candidates(material)
    if unseen.folds:
        rows = {c.id: row for row, c in enumerate(pool.conversations)}
        covered = cross_fit(material, pool).covered[[rows[c.id] for c in unseen.conversations]]
    curve, more = curve_of(pool, pool_values, unseen, truth, unit, material)
    return Reach(
        coverage=share_of(int((covered & ~truth).sum()), int((~truth).sum())),
        false_alarms=share_of(int((covered & truth).sum()), int(truth.sum())),
        recall_up=share_of(int((good & truth).sum()), int(truth.sum())),
        recall_down=share_of(int((~good & ~truth).sum()), int((~truth).sum())),
        beside=plain.strongest,
        recovered=recovered(unseen.netsat, plain.scores[plain.strongest][1], truth, unit, rng),
        correlation={
            side: mean_correlation(values[:, [r.polarity == side for r in rubrics]], unit, rng) for side in SIDES
        },
        curve=curve,
        more=more,
    )


def curve_of(
    pool: Candidates,
    pool_values: Floats | None,
    unseen: Unseen,
    truth: Bools,
    unit: Ints,
    material: Material,
) -> tuple[tuple[CurvePoint, ...], Figure]:
    """Measure the AUC of choices with fewer labels; without a curve, the figure says why."""
    if why := why_no_curve(material, pool_values, unseen, pool.labels, truth):
        return (), Figure(None, n=len(truth), undefined=why)
    rng, fit = np.random.default_rng([material.settings.seed, 7]), cross_fit(material, pool)
    labels = round(len(pool.labels) * (1 - 1 / unseen.folds if unseen.folds else 1))
    rows = {c.id: row for row, c in enumerate(pool.conversations)}
    scores: dict[int, list[Floats]] = {}
    for share in SHARES:
        if unseen.folds:
            found = fit.gathered([by_fewer(part, share, fit, rng) for part in fit.parts])
            scores[round(share * labels)] = [found[[rows[c.id] for c in unseen.conversations]]]
        else:
            assert pool_values is not None, "there is no curve without"
            weighed = Weighed.of(pool, material.settings, material.family_of)
            orders = [fewer(weighed, np.ones(len(rows), dtype=bool), share, fit, rng)[1] for _ in range(DRAWS)]
            scores[round(share * labels)] = [pool_values[:, order].sum(axis=1) for order in orders]
    scores[labels] = [unseen.netsat]
    points, more = learning_curve(scores, truth, unit, rng, MORE)
    return tuple(CurvePoint(labels=size, auc=auc) for size, auc in points.items()), more


def fewer(weighed: Weighed, rows: Bools, share: float, fit: CrossFit, rng: np.random.Generator) -> tuple[Bools, Ints]:
    """Choose by a share of each class of some conversations: which were drawn, and columns of the pool."""
    drawn, up = np.zeros(len(rows), dtype=bool), weighed.pool.labels
    for one in (np.flatnonzero(rows & up), np.flatnonzero(rows & ~up)):
        drawn[rng.choice(one, round(share * len(one)), replace=False)] = True
    return drawn, weighed.order(drawn, fit.alpha, hints=fit.hints)


def by_fewer(part: Part, share: float, fit: CrossFit, rng: np.random.Generator) -> Floats:
    """Score all conversations by rubrics that a share of those outside a fold chose, less their θ `[conversation]`."""
    pool = part.weighed.pool
    drawn, order = fewer(part.weighed, ~part.labeled_out, share, fit, rng)
    netsat = pool.values[:, order].sum(axis=1)
    return np.asarray(netsat - theta_c(netsat[drawn], pool.labels[drawn]))


def why_no_curve(material: Material, pool_values: Floats | None, unseen: Unseen, labels: Bools, truth: Bools) -> str:
    """Say why there is no curve; empty where there can be one."""
    if pool_values is None and not unseen.folds:
        if not material.pool:
            return "rubrics were given, and none were chosen"
        if material.settings.method == "spur":
            return "SPUR revises one set, and chooses none"
        if not material.settings.stability:
            return "resampling was left out"
        return "a model would have to be paid for answering the rubrics that were not chosen"
    if SHARES[0] * min(labels.sum(), (~labels).sum()) < FEWEST:
        return f"a quarter of the labels has fewer than {FEWEST} of a class"
    if truth.all() or not truth.any():
        return "only one class was held out"
    return ""
