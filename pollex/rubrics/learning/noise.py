"""What wrong labels would do to the choice: how much of it a few flipped thumbs leave."""

from typing import NamedTuple

import numpy as np

from pollex.measures.arrays import Bools, Ints
from pollex.rubrics.learning.crossfit import WeighedPool
from pollex.rubrics.records import LIKELY_LEVEL
from pollex.selection.multi_split import (
    add_unproven_rubrics_as_hints,
    adjust_p_values_by_holm,
    compute_fisher_p_values_of_rubrics,
    keep_one_conversation_per_block,
    keep_one_rubric_per_family,
)

FLIPPED_LABEL_SHARE_PER_DRAW = 0.05
"""Share of the labels that each draw turns round."""
LABEL_NOISE_DRAWS = 20
FEWEST_RUBRICS_FOR_A_SHARE = 3
"""Of fewer, trials are counted: a share of one or two rubrics is mostly all or nothing."""


class ChoiceUnderNoise(NamedTuple):
    """What draws of flipped labels leave of a choice.

    Attributes:
        again: How many of its rubrics each draw chose again.
        rubrics: As many as it has.
    """

    again: list[int]
    rubrics: int


def measure_rubric_choice_under_label_noise(
    weighed: WeighedPool, alpha: float, *, hints: bool
) -> ChoiceUnderNoise:
    """Count what each draw of flipped labels leaves of the choice; empty where nothing is chosen.

    The answers stay, and so does the pool. The choice is the one that all labels make at once,
    without halvings, with the labels as they are and with flipped ones: twenty choices take less
    time than one by halvings.

    Args:
        hints: As for `Weighed.order`.
    """
    rng = np.random.default_rng([weighed.seed, 11])
    up = weighed.pool.labels
    # one conversation of each user, as exact p-values need
    alone = keep_one_conversation_per_block(np.ones(len(up), dtype=bool), weighed.blocks, rng)
    plain = _choose_rubrics_without_halvings(weighed, up, alone, alpha, hints=hints)
    again = []
    for _ in range(LABEL_NOISE_DRAWS if len(plain) else 0):
        turned = np.zeros(len(up), dtype=bool)
        turned[
            rng.choice(
                len(up), max(1, round(FLIPPED_LABEL_SHARE_PER_DRAW * len(up))), replace=False
            )
        ] = True
        flipped = up ^ turned
        # one kind of thumb has nothing to choose by
        if flipped[alone].any() and not flipped[alone].all():
            chosen = _choose_rubrics_without_halvings(weighed, flipped, alone, alpha, hints=hints)
            again.append(int(np.isin(plain, chosen).sum()))

    return ChoiceUnderNoise(again, len(plain))


def _choose_rubrics_without_halvings(
    weighed: WeighedPool,
    up: Bools,
    alone: Bools,
    alpha: float,
    *,
    hints: bool,
) -> Ints:
    """Choose by the exact p-values of all conversations that don't depend on each other."""
    pool = weighed.pool
    sat = weighed.sat
    values = pool.values[alone]
    labels = up[alone]
    # words were mined with these labels: only their own halvings can prove them
    unproven = weighed.mined & (weighed.weigh(np.ones(len(up), dtype=bool))[0].p > LIKELY_LEVEL)
    p = np.where(
        unproven,
        1.0,
        adjust_p_values_by_holm(compute_fisher_p_values_of_rubrics(pool.held[alone], labels, sat)),
    )
    came_up = None if pool.came_up is None else pool.came_up[alone]
    narrowed = keep_one_rubric_per_family(
        values,
        labels,
        sat,
        p,
        weighed.ranks,
        weighed.deeds,
        weighed.families,
        LIKELY_LEVEL,
        came_up,
    )
    # hints where they help, and where nothing else is left
    if hints or not len(narrowed.base):
        order = add_unproven_rubrics_as_hints(
            pool.values,
            up,
            sat,
            pool.ids,
            narrowed,
            alpha,
            len(pool.ids),
            weighed.policy,
        )
        return weighed.within_limits(order)

    return weighed.within_limits(narrowed.base)


def describe_stability_under_label_noise(left: ChoiceUnderNoise) -> list[str]:
    """Tell the figure in a sentence; nothing where there is none."""
    if not left.again:
        return []

    if_wrong = f"If {FLIPPED_LABEL_SHARE_PER_DRAW:.0%} of the thumbs were wrong"
    trials = f"{len(left.again)} trials with thumbs turned round at random"
    if left.rubrics < FEWEST_RUBRICS_FOR_A_SHARE:
        whole = sum(again == left.rubrics for again in left.again)
        which = "the one rubric" if left.rubrics == 1 else "both rubrics"
        return [f"{if_wrong}: {whole} of {trials} chose {which} again."]

    shares = np.array(left.again) / left.rubrics
    low, high = np.percentile(shares, [2.5, 97.5])
    return [
        f"{if_wrong}, {np.mean(shares):.0%} of these rubrics would be chosen again "
        f"({low:.0%} to {high:.0%} in 95 % of {trials})."
    ]
