"""The choice of rubrics from a pool."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import block_ids, folds, preferred
from pollex.errors import BadLabels, BadRubrics
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import auc
from pollex.rubrics.learning.crossfit import FOLDS, Candidates, CrossFit, Weighed, cross_fit, families_of
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.records import LIKELY
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.worth import speaks_against, worth_of
from pollex.selection.alpha import choose_alpha
from pollex.selection.losses import theta_c
from pollex.selection.multi_split import ALPHA, Narrowed, correlations, halvings
from pollex.selection.policies import select
from pollex.selection.pool import Budget, Pool, Selection, in_order

LEAST_ANSWERED = 0.5
FEWEST_REASONS = 2
LEAST_OCCASIONS = 0.1
"""A rubric of a model that rests on one reason stays where its occasion comes up in this share of conversations."""

TWINS = 0.9
"""Rubrics whose values correlate by as much, either way round, say the same."""


def both_lists(budget: Budget, kinds: Ints) -> Budget:
    """Give the headline list a whole set's budget, and the second list what is left of it.

    Args:
        budget: See `LearnSettings`.
        kinds: See `Candidates`, of the rubrics to choose from.
    """
    if len(budget) > 2:
        return budget
    sat, dsat, *_ = np.bincount(kinds, minlength=4).tolist()
    return (*budget, max(budget[0] - sat, 0), max(budget[1] - dsat, 0))


def candidates(material: Material) -> Candidates:
    """Return the candidates that have enough answers.

    Raises:
        BadRubrics: No rubric has enough answers.
    """
    table, kept = material.table, material.kept
    rubrics, unjudged = [], {}
    _, answered = table.matrix(material.training, kept)
    for rubric, share in zip(kept, answered.mean(axis=0), strict=True):
        if share >= LEAST_ANSWERED:
            rubrics.append(rubric)
        else:
            unjudged[rubric.id] = _out(answered=float(share))
    if not rubrics:
        raise BadRubrics(
            f"no rubric to choose from: of {len(kept)} written, none has answers for half of the log",
            remedy="see `pollex trace` of this run for what went wrong",
        )
    conversations = table.judged(material.training, rubrics)
    if material.pool and material.by_model:  # rubrics that were given all stay
        rubrics, rare = _without_rare(material, conversations, rubrics)
        rubrics, twins = _without_twins(material, conversations, rubrics)
        unjudged |= rare | twins
    return Candidates(conversations, rubrics, *table.matrix(conversations, rubrics), unjudged)


def _without_rare(
    material: Material, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> tuple[list[Rubric], dict[str, Any]]:
    never = material.table.never
    kept, rare = [], {}
    for rubric in rubrics:
        share = sum((c.id, rubric.id) not in never for c in conversations) / len(conversations)
        if (
            not rubric.answered_by
            and rubric.source
            and len(rubric.reason_ids) < FEWEST_REASONS
            and share < LEAST_OCCASIONS
        ):
            rare[rubric.id] = _out(why=f"it rests on one reason, and its occasion comes up in {share:.0%}")
        else:
            kept.append(rubric)
    return (kept, rare) if kept else (list(rubrics), {})


def _without_twins(
    material: Material, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> tuple[list[Rubric], dict[str, Any]]:
    values, _ = material.table.matrix(conversations, rubrics)
    alike = np.abs(correlations(values)) >= TWINS
    order = sorted(range(len(rubrics)), key=lambda i: (-len(rubrics[i].reason_ids), rubrics[i].id))
    kept: list[int] = []
    twins = {}
    for i in order:
        if (twin := next((k for k in kept if alike[i, k]), None)) is None:
            kept.append(i)
        else:
            twins[rubrics[i].id] = _out(why=f"it is answered as “{rubrics[twin].text}” is")
    return [rubrics[i] for i in sorted(kept)], twins


def _out(**why: Any) -> dict[str, Any]:
    return {"loss": None, "beaten_by": None, "stability": None, **why}


def count_never(material: Material) -> tuple[Material, list[str]]:
    """Choose the value of "Never came up" by cross-validation; return notes on it."""
    table = material.table
    if not table.never:
        return material, []
    pool = candidates(material)
    tried: dict[str, tuple[Material, float | None]] = {}
    for name, counts in (("neutral", {}), ("its rubric's mean", _means(table, pool))):
        counting = replace(material, table=replace(table, never_counts=counts))
        scores = cross_validated_alpha(counting, candidates(counting))[2]
        tried[name] = counting, None if scores is None else auc(np.array(scores), pool.labels)
    best = max(tried, key=lambda name: (tried[name][1] or 0.0, name == "neutral"))
    share = len(table.never) / max(sum(len(each) for each in table.values.values()), 1)
    figures = ", ".join(f"{name} {value:.3f}" for name, (_, value) in tried.items() if value is not None)
    by = f"AUC by cross-validation: {figures}" if figures else "too few labels to choose by cross-validation"
    return tried[best][0], [f"“Never came up” ({share:.0%} of answers) counts as {best} ({by})."]


def _means(table: GivenAnswers, pool: Candidates) -> dict[str, float]:
    found = {}
    for rubric in pool.rubrics:
        came_up = [
            value
            for c in pool.conversations
            if (c.id, rubric.id) not in table.never and (value := table.values[c.id].get(rubric.id)) is not None
        ]
        if came_up:
            found[rubric.id] = float(np.mean(came_up))
    return found


def choose(material: Material) -> dict[str, Any]:
    """Choose rubrics on training conversations; return the choice as JSON values."""
    material, told = count_never(material)
    pool, settings = candidates(material), material.settings
    shares, p, families, why, every = None, None, {}, {}, np.ones(len(pool.labels), dtype=bool)
    if material.by_evidence:
        weighed = Weighed.of(pool, settings, material.family_of)
        fit = cross_fit(material, pool)
        alpha, table, notes = fit.alpha, fit.table, list(fit.notes)
        found, narrowed = weighed.weigh(every)
        order = weighed.order(every, alpha, hints=fit.hints)
        turned = turned_of(fit, pool, order) if material.crossfitted and fit.parts else order[:0]
        order = order[~np.isin(order, turned)]
        theta = theta_c(pool.values[:, order].sum(axis=1), pool.labels)
        held_out_scores = (fit.above + theta).tolist() if fit.parts else None
        n = len(pool.rubrics)
        chosen = in_order(Pool.of(pool.values, pool.labels, pool.kinds % 2, pool.ids, (n, n)), alpha, order)
        families = families_of(weighed, narrowed)
        why = _why_out(pool, narrowed, found.p, "other hints came first" if fit.hints else "hints do not help here")
        why |= {one: {"why": "went the other way on conversations that it did not see"} for one in turned.tolist()}
        shares, p = found.chosen, dict(zip(pool.ids, found.p.tolist(), strict=True))
    else:
        alpha, table, held_out_scores, notes = cross_validated_alpha(material, pool)
        chosen = chosen_by(material, pool, every, alpha, np.random.default_rng(settings.seed))
        shares = stable_shares(material, pool, alpha)
    notes += told
    if missing := int((~pool.answered).sum()):
        notes.append(
            f"{missing} of {pool.answered.size} training answers are missing; each counts as its rubric's mean"
        )
    stability = [None] * len(pool.ids) if shares is None else shares.tolist()
    return {
        "alpha": alpha,
        "alphas": table,
        "held_out_scores": held_out_scores,
        "p": p,
        "families": families,
        "chosen": [pool.ids[step.index] for step in chosen.steps],
        "choices": {
            pool.ids[one.index]: {
                "step": number,
                "loss": one.loss,
                "correctness": one.correctness,
                "sharpness": one.sharpness,
                "stability": stability[one.index],
            }
            for number, one in enumerate(chosen.steps, start=1)
        },
        "dropped": {
            pool.ids[one.index]: {
                "loss": one.loss,
                "beaten_by": None if one.beaten_by is None else pool.ids[one.beaten_by],
                "stability": stability[one.index],
                **why.get(one.index, {}),
            }
            for one in chosen.drops
        }
        | pool.unjudged,
        "notes": notes,
        "never": dict(material.table.never_counts),
    }


def turned_of(fit: CrossFit, pool: Candidates, order: Ints) -> Ints:
    """Return the columns that conversations speak against which other choices of them did not see, not all of them."""
    rubrics, up = [pool.rubrics[column] for column in order.tolist()], pool.labels
    held, known = fit.held_of(rubrics)
    known &= ~preferred(pool.conversations)[:, None]
    worths = [worth_of(mine[told], up[told]) for mine, told in zip(held.T, known.T, strict=True)]
    against = np.array([speaks_against(worth, r.polarity) for worth, r in zip(worths, rubrics, strict=True)])
    against[0] &= not against.all()
    return np.asarray(order[against])


def _why_out(pool: Candidates, narrowed: Narrowed, p: Floats, hints: str) -> dict[int, dict[str, str]]:
    """Say by evidence why a column would be out: its family has another, or its labels don't bear it out."""
    leads = {one: first for first, members in narrowed.members.items() for one in members.tolist() if one != first}
    return {
        one: {
            "why": f"belongs to the family of “{pool.rubrics[leads[one]].text}”"
            if one in leads
            else "no room was left for it"
            if p[one] <= LIKELY
            else f"neither proven nor likely, and {hints}"
        }
        for one in range(len(pool.rubrics))
    }


def chosen_by(material: Material, pool: Candidates, rows: Bools, alpha: float, rng: np.random.Generator) -> Selection:
    """Choose from a pool by some of its conversations `[conversation]`, as a run does whose answers were paid for."""
    settings, budget = material.settings, both_lists(material.settings.budget, pool.kinds)
    return select(pool.values[rows], pool.labels[rows], pool.kinds, pool.ids, budget, alpha, rng, settings.policy)


def cross_validated_alpha(
    material: Material, pool: Candidates
) -> tuple[float, list[dict[str, Any]], list[float] | None, list[str]]:
    """Choose α by cross-validation.

    Returns α, its table, out-of-fold NetSAT, and warnings.
    """
    settings = material.settings
    try:
        dealt = folds(pool.conversations, FOLDS, settings.seed)
    except BadLabels as error:
        alpha = ALPHA if settings.alpha is None else settings.alpha
        return alpha, [], None, [f"α = {alpha:g} was not cross-validated: {error.what}"]
    grid = None if settings.alpha is None else (settings.alpha,)
    choice = choose_alpha(
        pool.values,
        pool.labels,
        pool.kinds,
        pool.ids,
        both_lists(settings.budget, pool.kinds),
        dealt,
        settings.policy,
        grid,
        settings.seed,
    )
    return choice.alpha, [vars(row) for row in choice.table], choice.held_out.tolist(), []


def stable_shares(material: Material, pool: Candidates, alpha: float) -> Floats | None:
    """Return how often halves of the training conversations choose each rubric `[rubric]`; None if switched off.

    Source: Meinshausen and Bühlmann 2010, stability selection, doi:10.1111/j.1467-9868.2010.00740.x.
    """
    settings, taken = material.settings, np.zeros(len(pool.ids))
    if not settings.stability:
        return None
    rng = np.random.default_rng([settings.seed, 1])
    halves = halvings(pool.labels, block_ids(pool.conversations), rng)
    for half in halves:
        if (up := pool.labels[half]).any() and not up.all():
            taken[chosen_by(material, pool, half, alpha, rng).chosen] += 1
    return taken / len(halves)
