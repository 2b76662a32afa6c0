"""Which rubrics the labels prove: p-values over many halvings.

On one half of the conversations the whole choice is made anew; on the other, each chosen rubric
gets a one-sided exact p, times the number chosen; a rubric that isn't chosen gets 1. Over the
halvings the p-values of a rubric become one by the quantile rule, so that all labels count and no
verdict rests on one halving. The chance that any rubric without an effect is called proven stays
within the level. Source: Meinshausen, Meier and Bühlmann 2009, "p-values for high-dimensional
regression", doi:10.1198/jasa.2009.tm08647, equations 2.2 and 2.3. For fixed sets: Holm 1979, "A
simple sequentially rejective multiple test procedure".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.selection.losses import MAX_EVAL_DIFFERENCE
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME, select_rubrics

HALVING_COUNT = 20
MIN_QUANTILE_TRIED = 0.05
"""The lowest quantile that the rule tries."""

MAX_P_OPEN_TO_CHOICE = 0.1
"""Rubrics are open to choice whose own one-sided p is smaller, on the half that chooses."""

MIN_CONVERSATIONS_HELD, MIN_SHARE_HELD = 4, 0.03
"""Conversations in which a rubric has to hold, on the half that chooses, as a number and as a share."""

MAX_P_PROVEN = 0.05
MIN_FAMILY_CORRELATION = 0.7
"""Correlation of answers from which on two rubrics of a side are one family."""

EVENT_RANK, QUOTABLE_RANK, TONE_RANK = 2, 1, 0
"""How easy a rubric is to act on: an event; a deed or words that a quote shows; a length or a mood."""

MAX_RUBRICS_A_SIDE = 10
HALVING_ALPHA = 1.0
"""Weight of sharpness in the choices that are made anew: the middle of what cross-validation tries."""


@dataclass(frozen=True)
class MultiSplit:
    """What the halvings say of each rubric, both `[rubric]`.

    Attributes:
        p: Adjusted for all rubrics and all halvings.
        chosen: Share of the halvings that chose it.
    """

    p: Floats
    chosen: Floats


def find_where_rubrics_hold(values: Floats, came_up: Bools | None = None) -> Bools:
    """Tell where rubrics hold, from their signed terms of NetSAT: beyond the middle of the scale.

    Args:
        came_up: Where the occasion of each came up, `[conversation, rubric]` as the values: one
            that never came up has a value, too, and holds nowhere. None: everywhere.
    """
    beyond = np.abs(values) > MAX_EVAL_DIFFERENCE / 2
    return np.asarray(beyond if came_up is None else beyond & came_up)


def compute_fisher_p_values_of_rubrics(held: Bools, up: Bools, sat: Bools) -> Floats:
    """Compute Fisher's exact p that a rubric's thumbs differ as its side says `[rubric]`.

    Args:
        held: Where each rubric holds `[conversation, rubric]`.
        up: Thumbs up `[conversation]`.
        sat: Whether a rubric is one of satisfaction `[rubric]`.
    """
    from scipy.stats import hypergeom  # half a second; only learning needs it

    # of the conversations where it holds, those with the thumb of its side
    held_up = held[up].sum(axis=0)
    n = held.sum(axis=0)
    on_its_side = np.where(sat, held_up, n - held_up)
    of_its_label = np.where(sat, up.sum(), (~up).sum())

    return np.asarray(
        hypergeom.sf(
            on_its_side - 1,
            len(up),
            of_its_label,
            n,
        )
    )


def adjust_p_values_by_holm(p: Floats) -> Floats:
    """Adjust the p-values of rubrics that were fixed before `[rubric]`."""
    order = np.argsort(p)
    if len(p):
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    else:
        steps = p

    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def combine_p_values_of_halvings(p: Floats) -> Floats:
    """Make one p-value of those of all halvings `[halving, rubric]`: the adaptive quantile rule."""
    splits = len(p)
    ranks = np.arange(max(1, int(np.ceil(MIN_QUANTILE_TRIED * splits))), splits + 1)
    # the best of all quantiles from γ on, paid for by 1 − ln γ
    quantiles = np.sort(p, axis=0)[ranks - 1] / (ranks / splits)[:, None]

    return np.asarray(
        np.minimum(
            1.0,
            (1 - np.log(MIN_QUANTILE_TRIED)) * quantiles.min(axis=0),
        )
    )


def draw_random_halvings(up: Bools, blocks: Ints, rng: np.random.Generator) -> list[Bools]:
    """Deal conversations into halves, each class evenly, and a block (a user) into one half.

    Returns:
        `HALVING_COUNT` masks `[conversation]` of the halves that choose.
    """
    # a block counts by the label of its first conversation
    first = np.unique(blocks, return_index=True)[1]
    of_up = up[first]
    names = blocks[first]
    masks = []
    for _ in range(HALVING_COUNT):
        first_half: list[int] = []
        for label in (True, False):
            dealt = rng.permutation(names[of_up == label])
            first_half.extend(dealt[: len(dealt) // 2].tolist())
        masks.append(np.isin(blocks, first_half))

    return masks


def keep_one_conversation_per_block(rows: Bools, blocks: Ints, rng: np.random.Generator) -> Bools:
    """Keep one conversation of each block (a user) among some: a test takes those that don't depend on each other."""
    drawn = rng.permutation(np.flatnonzero(rows))
    independent = np.zeros(len(rows), dtype=bool)
    independent[drawn[np.unique(blocks[drawn], return_index=True)[1]]] = True

    return independent


def choose_rubrics_on_one_half(
    values: Floats,
    up: Bools,
    sat: Bools,
    ids: Sequence[str],
    policy: str = DEFAULT_SELECTION_POLICY_NAME,
    came_up: Bools | None = None,
) -> Ints:
    """Choose rubrics on some of the conversations: columns in the order of choice.

    Args:
        values: Signed terms of NetSAT `[conversation, rubric]`.
        came_up: As in `find_where_rubrics_hold`.
    """
    held = find_where_rubrics_hold(values, came_up)
    # and whose thumbs differ as their side says
    enough = held.sum(axis=0) >= max(MIN_CONVERSATIONS_HELD, MIN_SHARE_HELD * len(up))
    columns = np.flatnonzero(
        enough & (compute_fisher_p_values_of_rubrics(held, up, sat) < MAX_P_OPEN_TO_CHOICE)
    )
    if not len(columns) or up.all() or not up.any():
        return np.zeros(0, dtype=np.intp)

    names = [ids[column] for column in columns.tolist()]
    rng = np.random.default_rng(0)
    selection = select_rubrics(
        values[:, columns],
        up,
        sat[columns],
        names,
        (MAX_RUBRICS_A_SIDE, MAX_RUBRICS_A_SIDE),
        HALVING_ALPHA,
        rng,
        policy,
    )
    return np.asarray(columns[selection.chosen])


def prove_rubrics_by_halvings(
    values: Floats,
    up: Bools,
    sat: Bools,
    ids: Sequence[str],
    blocks: Ints,
    rng: np.random.Generator,
    policy: str = DEFAULT_SELECTION_POLICY_NAME,
    came_up: Bools | None = None,
) -> MultiSplit:
    """Say what the labels prove of each rubric of a pool.

    Args:
        values: Signed terms of NetSAT `[conversation, rubric]`.
        up: Thumbs up `[conversation]`.
        sat: Whether a rubric is one of satisfaction `[rubric]`.
        blocks: Number of each conversation's user or other unit `[conversation]`.
        came_up: As in `find_where_rubrics_hold`.
    """
    held = find_where_rubrics_hold(values, came_up)
    # p-values `[halving, rubric]`; a rubric that isn't chosen has 1
    p = np.ones((HALVING_COUNT, len(ids)))
    was_chosen = np.zeros((HALVING_COUNT, len(ids)))
    for row, choosing in enumerate(draw_random_halvings(up, blocks, rng)):
        occasions = None if came_up is None else came_up[choosing]
        chosen = choose_rubrics_on_one_half(
            values[choosing],
            up[choosing],
            sat,
            ids,
            policy,
            occasions,
        )
        if len(chosen):
            other = keep_one_conversation_per_block(~choosing, blocks, rng)
            p_values = compute_fisher_p_values_of_rubrics(
                held[np.ix_(other, chosen)],
                up[other],
                sat[chosen],
            )
            p[row, chosen] = np.minimum(1.0, p_values * len(chosen))
            was_chosen[row, chosen] = 1.0

    return MultiSplit(combine_p_values_of_halvings(p), was_chosen.mean(axis=0))


@dataclass(frozen=True)
class NarrowedFamilies:
    """Rubrics that the labels bear out, near ones under one entry.

    Attributes:
        base: Columns of those that lead their families, the surest first `[step]`.
        open: Columns that may be added: no member of these families `[column]`.
        members: Columns of each family, by that of the one that leads it; without those that have
            their own entry.
    """

    base: Ints
    open: Ints
    members: dict[int, Ints]


def keep_one_rubric_per_family(
    values: Floats,
    up: Bools,
    sat: Bools,
    p: Floats,
    ranks: Ints,
    deeds: Bools,
    families: Sequence[str],
    likely: float,
    came_up: Bools | None = None,
) -> NarrowedFamilies:
    """Keep one rubric a family: of those that are borne out, by rank (an event first), then what holds most often.

    A narrower one is kept beside it that is borne out, too, and proven within the family: its
    thumbs differ from those where only the wider one holds.

    Args:
        up: Thumbs up of conversations that don't depend on each other `[conversation]`.
        p: Adjusted `[rubric]`.
        ranks: How easy a rubric is to act on: `EVENT_RANK` for one of an event `[rubric]`.
        deeds: Whether it tells of a deed: a deed and what came of it are two findings, however
            alike they are `[rubric]`.
        families: Name of each rubric's family; those of a side that are answered alike are one,
            too.
        likely: Highest p that counts.
        came_up: As in `find_where_rubrics_hold`.
    """
    held = find_where_rubrics_hold(values, came_up)
    events = ranks == EVENT_RANK
    alike = correlate_rubric_answers(values) >= MIN_FAMILY_CORRELATION
    members: dict[int, Ints] = {}
    # the surest rubric first; whatever is of its family goes with it
    gone = np.zeros(len(p), dtype=bool)
    for column in np.argsort(p, kind="stable").tolist():
        if p[column] > likely or gone[column]:
            continue
        same = (
            np.array([family_name == families[column] for family_name in families]) | alike[column]
        )
        family = same & (sat == sat[column]) & (deeds == deeds[column]) & ~gone
        sure = np.flatnonzero(family & (p <= max(p[column], MAX_P_PROVEN)))
        first = int(
            max(
                sure,
                key=lambda candidate: (ranks[candidate], held[:, candidate].sum()),
            )
        )
        within = find_proven_narrower_rubrics(
            held,
            up,
            sat,
            first,
            np.flatnonzero(family & events & (p <= likely)),
        )
        members[first] = np.setdiff1d(np.flatnonzero(family), within)
        for narrower in within.tolist():
            members[narrower] = np.array([narrower])
        gone |= family

    return NarrowedFamilies(
        np.array(list(members), dtype=np.intp),
        np.flatnonzero(~gone),
        members,
    )


def find_proven_narrower_rubrics(
    held: Bools,
    up: Bools,
    sat: Bools,
    first: int,
    columns: Ints,
) -> Ints:
    """Return narrower rubrics of a family whose thumbs differ beside the rest of it, with Holm's adjustment."""
    rows = held[:, first]
    # narrower ones hold in some of the conversations where the first holds
    narrower = columns[held[rows][:, columns].sum(axis=0) < rows.sum()]
    narrower = narrower[held[:, narrower].sum(axis=0) < rows.sum()]
    proven = (
        adjust_p_values_by_holm(
            compute_fisher_p_values_of_rubrics(held[rows][:, narrower], up[rows], sat[narrower])
        )
        <= MAX_P_PROVEN
    )
    return np.asarray(narrower[proven], dtype=np.intp)


def correlate_rubric_answers(values: Floats) -> Floats:
    """Correlate the answers of rubrics `[rubric, rubric]`; 0 where one is constant."""
    # constant answers correlate with nothing
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(standard.T @ standard / max(len(values), 1))


def add_unproven_rubrics_as_hints(
    values: Floats,
    up: Bools,
    sat: Bools,
    ids: Sequence[str],
    narrowed: NarrowedFamilies,
    alpha: float,
    most: int,
    policy: str = DEFAULT_SELECTION_POLICY_NAME,
) -> Ints:
    """Add hints that a policy chooses to those that are borne out: columns in their order, `most` in all."""
    columns = narrowed.open
    # hints fill what room is left behind the rubrics that are borne out
    room = most - len(narrowed.base)
    if not len(columns) or room < 1:
        return narrowed.base[:most]

    names = [ids[column] for column in columns.tolist()]
    rng = np.random.default_rng(0)
    chosen = select_rubrics(
        values[:, columns],
        up,
        sat[columns],
        names,
        (MAX_RUBRICS_A_SIDE, MAX_RUBRICS_A_SIDE),
        alpha,
        rng,
        policy,
    ).chosen
    return np.concatenate([narrowed.base, columns[chosen[:room]]]).astype(np.intp)
