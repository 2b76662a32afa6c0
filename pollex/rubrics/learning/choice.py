"""The choice of rubrics from a pool."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import assign_folds, flag_queue_preferred, number_dependent_blocks
from pollex.errors import BadLabels, BadRubrics
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rubrics.learning.crossfit import (
    CROSSFIT_FOLDS,
    Candidates,
    CrossFit,
    MixedPool,
    WeighedPool,
    cross_fit,
    learn_never_came_up_values_of_rubrics,
    make_json_of_rubric_families,
)
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.noise import (
    describe_stability_under_label_noise,
    measure_rubric_choice_under_label_noise,
)
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import LIKELY_LEVEL
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.worth import compute_evidence_of_rubric, do_thumbs_contradict_side
from pollex.selection.alpha import choose_alpha_by_cross_validation
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.multi_split import (
    HALVING_ALPHA,
    NarrowedFamilies,
    correlate_rubric_answers,
    draw_random_halvings,
)
from pollex.selection.netsat import sum_rubric_values
from pollex.selection.policies import select_rubrics
from pollex.selection.pool import Pool, Selection, compute_losses_along_selection
from pollex.text import format_count

MIN_ANSWERED_SHARE_OF_RUBRIC = 0.5
MIN_REASONS_BEHIND_MODEL_RUBRIC = 2
MIN_OCCASION_SHARE_OF_ONE_REASON_RUBRIC = 0.1
"""A rubric of a model that rests on one reason stays where its occasion comes up in this share of conversations."""

MIN_CORRELATION_OF_DUPLICATE_RUBRICS = 0.9
"""Rubrics whose values correlate by as much, either way round, say the same."""


def list_rubrics_to_choose_from(material: Material) -> Candidates:
    """Return the candidates that have enough answers.

    Raises:
        BadRubrics: No rubric has enough answers.
    """
    pool = _keep_rubrics_with_enough_answers(material)
    if not (material.pool and material.by_model):  # rubrics that were given all stay
        return pool

    conversations = pool.conversations
    rubrics = pool.rubrics
    # each step sees only what the one before it left
    rubrics, constant = _drop_rubrics_of_constant_answer(material, conversations, rubrics)
    rubrics, rare = _drop_rubrics_that_rarely_apply(material, conversations, rubrics)
    rubrics, twins = _drop_duplicate_rubrics_by_correlation(material, conversations, rubrics)
    rubrics, mirrors = _drop_reversed_rubrics_of_other_side(material, conversations, rubrics)
    out = pool.unjudged | constant | rare | twins | mirrors

    return _gather_answers_of_rubrics(material, conversations, rubrics, out)


def _keep_rubrics_with_enough_answers(material: Material) -> Candidates:
    """Return the rubrics that have enough answers.

    Raises:
        BadRubrics: No rubric has.
    """
    table = material.table
    written = material.kept
    rubrics = []
    unjudged = {}
    # a rubric that is answered for fewer than half of the conversations is out
    _, answered = table.matrix(material.training, written)
    for rubric, share in zip(written, answered.mean(axis=0), strict=True):
        if share >= MIN_ANSWERED_SHARE_OF_RUBRIC:
            rubrics.append(rubric)
        else:
            unjudged[rubric.id] = _make_json_of_dropped_rubric(answered=float(share))

    if not rubrics:
        raise BadRubrics(
            f"no rubric to choose from: of {len(written)} written, none has answers for half of the log",
            hint="see `pollex trace` of this run for what went wrong",
        )

    # of conversations without any answer to these rubrics there is nothing to learn
    conversations = table.judged(material.training, rubrics)
    return _gather_answers_of_rubrics(material, conversations, rubrics, unjudged)


def _gather_answers_of_rubrics(
    material: Material,
    conversations: list[Conversation],
    rubrics: list[Rubric],
    unjudged: dict[str, Any],
) -> Candidates:
    """Gather what was answered of some rubrics."""
    table = material.table
    values, answered = table.matrix(conversations, rubrics)
    came_up = table.came_up(conversations, rubrics)

    return Candidates(
        conversations,
        rubrics,
        values,
        answered,
        unjudged,
        came_up,
    )


def _drop_rubrics_of_constant_answer(
    material: Material,
    conversations: Sequence[Conversation],
    rubrics: Sequence[Rubric],
) -> tuple[list[Rubric], dict[str, Any]]:
    """Leave out rubrics whose answer is one and the same everywhere: they tell nothing."""
    spread = material.table.matrix(conversations, rubrics)[0].std(axis=0)
    constant = {}
    for rubric, deviation in zip(rubrics, spread, strict=True):
        if deviation == 0:
            constant[rubric.id] = _make_json_of_dropped_rubric(
                why="it is answered alike in every conversation"
            )

    varied = [rubric for rubric in rubrics if rubric.id not in constant]
    # where all are constant, all stay: a choice needs something to choose from
    if varied:
        return (varied, constant)
    return (list(rubrics), {})


def _drop_rubrics_that_rarely_apply(
    material: Material,
    conversations: Sequence[Conversation],
    rubrics: Sequence[Rubric],
) -> tuple[list[Rubric], dict[str, Any]]:
    never = material.table.never
    frequent = []
    rare = {}
    for rubric in rubrics:
        # in how large a share its occasion came up
        share = sum((c.id, rubric.id) not in never for c in conversations) / len(conversations)
        # one reason, and an occasion that hardly ever comes up: too little to go by
        if (
            not rubric.answered_by
            and rubric.source
            and len(rubric.reason_ids) < MIN_REASONS_BEHIND_MODEL_RUBRIC
            and share < MIN_OCCASION_SHARE_OF_ONE_REASON_RUBRIC
        ):
            rare[rubric.id] = _make_json_of_dropped_rubric(
                why=f"it rests on one reason, and its occasion comes up in {share:.0%}"
            )
        else:
            frequent.append(rubric)

    # where all are rare, all stay
    if frequent:
        return (frequent, rare)
    return (list(rubrics), {})


def _drop_duplicate_rubrics_by_correlation(
    material: Material,
    conversations: Sequence[Conversation],
    rubrics: Sequence[Rubric],
) -> tuple[list[Rubric], dict[str, Any]]:
    values, _ = material.table.matrix(conversations, rubrics)
    # `[rubric, rubric]`; the one with the most reasons stays, and ids decide between equals
    alike = np.abs(correlate_rubric_answers(values)) >= MIN_CORRELATION_OF_DUPLICATE_RUBRICS
    order = sorted(
        range(len(rubrics)),
        key=lambda i: (-len(rubrics[i].reason_ids), rubrics[i].id),
    )
    # in this order each rubric is compared with those that stay before it
    leading: list[int] = []
    twins = {}
    for i in order:
        if (twin := next((k for k in leading if alike[i, k]), None)) is None:
            leading.append(i)
        else:
            twins[rubrics[i].id] = _make_json_of_dropped_rubric(
                why=f"it is answered as “{rubrics[twin].text}” is"
            )

    # back to the order of the pool
    return [rubrics[i] for i in sorted(leading)], twins


def _drop_reversed_rubrics_of_other_side(
    material: Material,
    conversations: Sequence[Conversation],
    rubrics: Sequence[Rubric],
) -> tuple[list[Rubric], dict[str, object]]:
    """Keep of a rubric and its reverse on the other side the one that separates with the smaller loss."""
    by_id = {rubric.id: rubric for rubric in rubrics}
    gone = dict[str, object]()
    up = flag_positive_labels(conversations)
    for pair in material.mirrors:
        # an earlier pair may have taken one of the two out
        both = []
        for id_ in pair:
            if id_ in by_id and id_ not in gone:
                both.append(by_id[id_])
        if len(both) == 2 and up.any() and not up.all():
            # a pool of the two alone, which says with which of them the loss is smaller
            values, _ = material.table.matrix(conversations, both)
            pool = Pool.of(
                values,
                up,
                np.zeros(2, dtype=np.intp),
                [rubric.id for rubric in both],
                (2,),
            )
            better = pool.cheapest(np.arange(2), pool.losses(frozenset(), HALVING_ALPHA))
            goes = both[1 - better]
            stays = both[better]
            gone[goes.id] = _make_json_of_dropped_rubric(
                why=f"it is the reverse of “{stays.text}”, which separates better"
            )

    return [rubric for rubric in rubrics if rubric.id not in gone], gone


def _make_json_of_dropped_rubric(**why: object) -> dict[str, object]:
    return {
        "loss": None,
        "beaten_by": None,
        "stability": None,
        **why,
    }


def learn_value_of_never_came_up(material: Material) -> tuple[Material, list[str]]:
    """Learn on training conversations what "never came up" counts, by side; return a note on it."""
    table = material.table
    if not table.never:
        return material, []

    pool = _keep_rubrics_with_enough_answers(material)
    # those that the main judge answers, no built-in ones beside them
    judged = [rubric for rubric in pool.rubrics if not rubric.answered_by]
    counts = learn_never_came_up_values_of_rubrics(table, pool.conversations, judged)
    # how many of the answers are “never came up”, for the note
    answers = 0
    for c in pool.conversations:
        for rubric in judged:
            answers += rubric.id in table.distributions.get(c.id, {})
    never = 0
    for c in pool.conversations:
        for rubric in judged:
            never += (c.id, rubric.id) in table.never
    # all rubrics of a side have the same value, so that one of each tells it
    by_side = {}
    for rubric in judged:
        if rubric.id in counts:
            by_side[rubric.polarity] = counts[rubric.id]

    sides_in_words = []
    for side, value in sorted(by_side.items()):
        sides_in_words.append(f"{value:.1f} of 10 for {DESCRIPTION_BY_POLARITY[side]}")
    sides_told = " and ".join(sides_in_words)
    counting = replace(material, table=replace(table, never_counts=counts))
    return counting, [
        f"“Never came up” ({never / max(answers, 1):.0%} of the model's answers) counts as {sides_told or 'neutral'}."
    ]


@dataclass(frozen=True, eq=False)
class RubricChoice:
    """A choice from a pool, and what it rests on.

    Attributes:
        table: AUC of each α, as JSON values.
        held_out_scores: NetSAT of training conversations by choices that did not see them; None
            where unknown.
        stability: How often halves of the conversations choose each rubric `[rubric]`; None where
            unknown.
        p: What labels prove of each rubric, by its id; None where halvings don't tell.
        families: What a rubric that leads a family consists of, by its id, as JSON values.
        why: Why rubrics are out, by column, where the losses don't tell.
    """

    alpha: float
    table: list[dict[str, object]]
    held_out_scores: list[float] | None
    selection: Selection
    notes: list[str]
    stability: Floats | None
    p: dict[str, float] | None = None
    families: dict[str, dict[str, object]] = field(default_factory=dict)
    why: dict[int, dict[str, str]] = field(default_factory=dict)


def choose_rubrics_of_run(material: Material) -> dict[str, Any]:
    """Choose rubrics on training conversations; return the choice as JSON values."""
    material, never_notes = learn_value_of_never_came_up(material)
    pool = list_rubrics_to_choose_from(material)
    settings = material.settings
    # a pool is as large as labels bear out; what was given, or revised in place, has a budget
    by_labels = material.by_evidence or material.by_both
    if by_labels:
        chosen = choose_rubrics_proven_by_labels(material, pool)
    else:
        chosen = choose_rubrics_up_to_budget(material, pool)

    notes = list(chosen.notes)
    shares = chosen.stability
    selection = chosen.selection
    if material.pool and (nothing := explain_small_pool(pool, settings)):
        notes.append(nothing)
        # a small pool that is chosen whole leaves halves nothing to tell
        shares = None if len(selection.steps) == len(pool.ids) else shares

    notes += never_notes
    # a missing answer is filled, which a reader should know
    if missing := int((~pool.answered).sum()):
        notes.append(
            f"{missing} of {pool.answered.size} training answers are missing; each counts as its rubric's mean"
        )

    # by column of the pool
    if shares is None:
        stability = [None] * len(pool.ids)
    else:
        stability = shares.tolist()

    # columns become ids, as the result is stored as JSON
    dropped = {}
    for drop in selection.drops:
        dropped[pool.ids[drop.index]] = {
            "loss": drop.loss,
            "beaten_by": None if drop.beaten_by is None else pool.ids[drop.beaten_by],
            "stability": stability[drop.index],
            **chosen.why.get(drop.index, {}),
        }
    return {
        "alpha": chosen.alpha,
        "alphas": chosen.table,
        "held_out_scores": chosen.held_out_scores,
        "p": chosen.p,
        "families": chosen.families,
        "chosen": [pool.ids[step.index] for step in selection.steps],
        "choices": {
            pool.ids[step.index]: {
                "step": number,
                "loss": step.loss,
                "correctness": step.correctness,
                "sharpness": step.sharpness,
                "stability": stability[step.index],
            }
            for number, step in enumerate(selection.steps, start=1)
        },
        "dropped": dropped | pool.unjudged,
        "notes": notes,
        "never": dict(material.table.never_counts),
    }


def choose_rubrics_proven_by_labels(material: Material, pool: Candidates) -> RubricChoice:
    """Choose as many rubrics as labels bear out, whoever wrote them, and measure that choice by folds."""
    settings = material.settings
    every = np.ones(len(pool.labels), dtype=bool)
    # `MixedPool` where a model's rubrics and built-in ones are chosen together
    kind = WeighedPool if material.by_evidence else MixedPool
    weighed = kind.of(
        pool,
        settings,
        material.family_of,
        material.words_of(pool.conversations),
    )
    if isinstance(weighed, MixedPool) and not (len(weighed.models) or len(weighed.entitled)):
        raise BadRubrics(
            "no rubric to choose from: none of the model's is left, and built-in roles find moods and lengths alone",
            hint="see `pollex trace` of this run for what went wrong, or learn without a model",
        )

    # folds first: they say which α is best, and whether hints help
    fit = cross_fit(material, pool)
    proofs, narrowed = weighed.weigh(every)
    order = weighed.order(every, fit.alpha, hints=fit.hints)

    # What went the other way on conversations that its choice did not see leaves, where these can
    # tell.
    if material.crossfitted and fit.parts:
        turned = find_rubrics_contradicted_out_of_sample(fit, pool, order)
    else:
        turned = order[:0]

    order = order[~np.isin(order, turned)]
    # scores out of folds are less θ, and go on the scale of this one
    theta = compute_midpoint_of_class_means(sum_rubric_values(pool.values[:, order]), pool.labels)

    notes = list(fit.notes)
    # what readers should know of the choice, and why other rubrics are out
    if isinstance(weighed, MixedPool):
        notes += (
            [MODEL_SAW_ALL_NOTE.format(n=len(material.training))] if material.crossfitted else []
        )
        notes += explain_no_model_rubric(weighed, order)
        why = explain_drops_of_model_and_built_in_rubrics(weighed, order)
        families = {}
    else:
        notes += describe_stability_under_label_noise(
            measure_rubric_choice_under_label_noise(
                weighed,
                fit.alpha,
                hints=fit.hints,
            )
        )
        why = _explain_drops_by_evidence(
            pool,
            narrowed,
            proofs.p,
            "other hints came first" if fit.hints else "hints do not help here",
        )
        families = make_json_of_rubric_families(weighed, narrowed)

    for column in turned.tolist():
        why[column] = {"why": "went the other way on conversations that it did not see"}

    # A model's words come from these conversations: where others are held out, these alone can
    # prove them.
    held_out_tells = material.by_both and not material.crossfitted
    # the order is settled, so no limit may cut it: each side has room for all
    n = len(pool.rubrics)

    return RubricChoice(
        fit.alpha,
        fit.table,
        (fit.above + theta).tolist() if fit.parts else None,
        compute_losses_along_selection(
            Pool.of(pool.values, pool.labels, pool.kinds, pool.ids, (n, n)), fit.alpha, order
        ),
        notes,
        proofs.chosen,
        None if held_out_tells else dict(zip(pool.ids, proofs.p.tolist(), strict=True)),
        families,
        why,
    )


def choose_rubrics_up_to_budget(material: Material, pool: Candidates) -> RubricChoice:
    """Choose up to the budget: from rubrics that were given, or that a model revised in place."""
    alpha, table, held_out_scores, notes = choose_alpha_by_folds(material, pool)
    every = np.ones(len(pool.labels), dtype=bool)
    rng = np.random.default_rng(material.settings.seed)
    selection = choose_rubrics_on_some_conversations(material, pool, every, alpha, rng)

    return RubricChoice(
        alpha,
        table,
        held_out_scores,
        selection,
        notes,
        measure_stability_of_choice(material, pool, alpha),
    )


def explain_drops_of_model_and_built_in_rubrics(
    weighed: MixedPool, order: Ints
) -> dict[int, dict[str, str]]:
    """Say why columns of a model's pool would be out."""
    # columns that could be chosen on all conversations
    entering = weighed.entering(np.ones(len(weighed.pool.labels), dtype=bool)).tolist()
    full = len(order) >= weighed.most
    if full:
        left = "no room was left for it"
    else:
        left = "it adds nothing on conversations that the choice did not see"

    tone = "moods and lengths are no rubrics of a set: they are one tone"
    outside = {}
    for column, rubric in enumerate(weighed.pool.rubrics):
        if column not in entering:
            outside[column] = {"why": "neither proven nor likely" if rubric.leads else tone}

    return outside | {column: {"why": left} for column in entering}


DESCRIPTION_BY_POLARITY = {"dsat": "what goes wrong", "sat": "what goes well"}
MODEL_SAW_ALL_NOTE = (
    "The model read all {n} labeled conversations before it wrote the rubrics, since there are few: the choice of "
    "rubrics, θ, window and probability are measured on fifths that these did not see, but the words are not."
)


NO_MODEL_RUBRIC_NOTE = (
    "None of the model's rubrics is in the set: on conversations that the choice did not see, they add nothing to what "
    "built-in roles find, which choose as they do alone, without moods and lengths."
)


def explain_no_model_rubric(weighed: MixedPool, order: Ints) -> list[str]:
    """Say that a set has none of the model's rubrics, where the pool has some."""
    if len(weighed.models) and not np.isin(order, weighed.models).any():
        return [NO_MODEL_RUBRIC_NOTE]
    return []


def explain_small_pool(pool: Candidates, settings: LearnSettings) -> str:
    """Say that a pool is too small for a choice to mean much; empty where it isn't."""
    n = len(pool.ids)
    room = min(settings.most, sum(settings.limits))
    # a choice among fewer than two rubrics a place means little
    if n >= 2 * room:
        return ""

    if n <= room:
        had = "nothing to choose from"
    else:
        had = "little to choose from"

    return f"Selection had {had}: the pool has {format_count(n, 'rubric')}, and there is room for {room}."


def find_rubrics_contradicted_out_of_sample(fit: CrossFit, pool: Candidates, order: Ints) -> Ints:
    """Return the columns that conversations speak against which other choices of them did not see, not all of them."""
    rubrics = [pool.rubrics[column] for column in order.tolist()]
    up = pool.labels
    # where a choice that did not see the conversation has the rubric `[conversation, rubric]`
    held, unseen = fit.held_of(rubrics)
    # what a queue preferred is no fair test
    unseen &= ~flag_queue_preferred(pool.conversations)[:, None]
    worths = []
    for held_there, unseen_there in zip(held.T, unseen.T, strict=True):
        worths.append(compute_evidence_of_rubric(held_there[unseen_there], up[unseen_there]))

    against = np.array(
        [
            do_thumbs_contradict_side(worth, r.polarity)
            for worth, r in zip(worths, rubrics, strict=True)
        ]
    )
    # if all are spoken against, the first stays: a set has one rubric at least
    against[0] &= not against.all()
    return np.asarray(order[against])


def _explain_drops_by_evidence(
    pool: Candidates,
    narrowed: NarrowedFamilies,
    p: Floats,
    hints: str,
) -> dict[int, dict[str, str]]:
    """Say by evidence why a column would be out: its family has another, or its labels don't bear it out."""
    # by member, the rubric that leads its family
    leads = {}
    for first, members in narrowed.members.items():
        for member in members.tolist():
            if member != first:
                leads[member] = first

    reasons: dict[int, dict[str, str]] = {}
    for column in range(len(pool.rubrics)):
        if column in leads:
            why = f"belongs to the family of “{pool.rubrics[leads[column]].text}”"
        elif p[column] <= LIKELY_LEVEL:
            why = "no room was left for it"
        else:
            why = f"neither proven nor likely, and {hints}"

        reasons[column] = {"why": why}

    return reasons


def choose_rubrics_on_some_conversations(
    material: Material,
    pool: Candidates,
    rows: Bools,
    alpha: float,
    rng: np.random.Generator,
) -> Selection:
    """Choose from a pool by some of its conversations `[conversation]`, as a run does whose answers were paid for."""
    settings = material.settings
    about = (pool.values[rows], pool.labels[rows], pool.kinds, pool.ids)
    selection = select_rubrics(*about, settings.limits, alpha, rng, settings.policy)
    # a pool has a maximum in all, beside that of each side
    if material.pool:
        order = selection.chosen[: settings.most]
    else:
        order = selection.chosen

    # an order that was cut has the losses of its steps worked out anew
    if len(order) == len(selection.steps):
        return selection
    return compute_losses_along_selection(Pool.of(*about, settings.limits), alpha, order)


def choose_alpha_by_folds(
    material: Material, pool: Candidates
) -> tuple[float, list[dict[str, object]], list[float] | None, list[str]]:
    """Choose α by cross-validation.

    Returns α, its table, out-of-fold NetSAT, and warnings.
    """
    settings = material.settings
    try:
        dealt = assign_folds(pool.conversations, CROSSFIT_FOLDS, settings.seed)
    except BadLabels as error:
        alpha = HALVING_ALPHA if settings.alpha is None else settings.alpha
        return alpha, [], None, [f"α = {alpha:g} was not cross-validated: {error.what}"]

    # None: cross-validation tries a grid of its own
    grid = None if settings.alpha is None else (settings.alpha,)
    choice = choose_alpha_by_cross_validation(
        pool.values,
        pool.labels,
        pool.kinds,
        pool.ids,
        settings.limits,
        dealt,
        settings.policy,
        grid,
        settings.seed,
    )
    return choice.alpha, [vars(row) for row in choice.table], choice.held_out.tolist(), []


def measure_stability_of_choice(
    material: Material,
    pool: Candidates,
    alpha: float,
) -> Floats | None:
    """Return how often halves of the training conversations choose each rubric `[rubric]`; None if switched off.

    Source: Meinshausen and Bühlmann 2010, stability selection,
        doi:10.1111/j.1467-9868.2010.00740.x.
    """
    settings = material.settings
    times_chosen = np.zeros(len(pool.ids))
    if not settings.stability:
        return None

    rng = np.random.default_rng([settings.seed, 1])
    halves = draw_random_halvings(pool.labels, number_dependent_blocks(pool.conversations), rng)
    for half in halves:
        # a half with one kind of thumb can't choose
        if (up := pool.labels[half]).any() and not up.all():
            times_chosen[
                choose_rubrics_on_some_conversations(material, pool, half, alpha, rng).chosen
            ] += 1

    return times_chosen / len(halves)
