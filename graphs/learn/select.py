"""The choice of rubrics: `select` as plain functions of a run's work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import folds
from pollex.errors import BadLabels, BadRubrics
from pollex.graphs.learn.state import LearnContext
from pollex.graphs.learn.weigh import Candidates, Weighed, families_of
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import auc
from pollex.rubrics.records import LLM
from pollex.rubrics.rubric import Rubric
from pollex.selection.alpha import choose_alpha
from pollex.selection.multi_split import ALPHA
from pollex.selection.policies import select
from pollex.selection.pool import Budget, Pool, Selection, in_order
from pollex.selection.stability import stability

FOLDS = 5
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
        kinds: See `kinds_of`, of the rubrics to choose from.
    """
    if len(budget) > 2:
        return budget
    sat, dsat, *_ = np.bincount(kinds, minlength=4).tolist()
    return (*budget, max(budget[0] - sat, 0), max(budget[1] - dsat, 0))


def candidates(context: LearnContext) -> Candidates:
    """Return the candidates that have enough answers.

    Raises:
        BadRubrics: No rubric has enough answers.
    """
    work = context.work
    rubrics, unjudged = [], {}
    _, answered = work.matrix(context.training, work.kept)
    for rubric, share in zip(work.kept, answered.mean(axis=0), strict=True):
        if share >= LEAST_ANSWERED:
            rubrics.append(rubric)
        else:
            unjudged[rubric.id] = _out(answered=float(share))
    if not rubrics:
        raise BadRubrics(
            f"no rubric to choose from: of {len(work.kept)} written, none has answers for half of the log",
            remedy="see `pollex trace` of this run for what went wrong",
        )
    conversations = judged_conversations(context, context.training, rubrics)
    if work.pool and context.judge_record.kind == LLM:  # rubrics that were given all stay
        rubrics, rare = _without_rare(context, conversations, rubrics)
        rubrics, twins = _without_twins(context, conversations, rubrics)
        unjudged |= rare | twins
    return Candidates(conversations, rubrics, *work.matrix(conversations, rubrics), unjudged)


def _without_rare(
    context: LearnContext, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> tuple[list[Rubric], dict[str, Any]]:
    """Remove rubrics with one reason and an occasion that hardly ever comes up."""
    never = context.work.never
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
    context: LearnContext, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> tuple[list[Rubric], dict[str, Any]]:
    """Remove rubrics answered like another or its opposite; keep the one with more reasons."""
    values, _ = context.work.matrix(conversations, rubrics)
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    alike = np.abs(standard.T @ standard) / max(len(values), 1) >= TWINS
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
    """Return the record of a rubric that was never open to choice."""
    return {"loss": None, "beaten_by": None, "stability": None, **why}


def judged_conversations(
    context: LearnContext, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> list[Conversation]:
    """List conversations with an answer to any of the rubrics."""
    _, answered = context.work.matrix(conversations, rubrics)
    return [c for c, row in zip(conversations, answered, strict=True) if row.any()]


def fully_answered(
    context: LearnContext, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> list[Conversation]:
    """List conversations with an answer to every rubric, as a score needs."""
    _, answered = context.work.matrix(conversations, rubrics)
    return [c for c, row in zip(conversations, answered, strict=True) if row.all()]


def count_never(context: LearnContext) -> list[str]:
    """Choose the value of "Never came up" by cross-validation; return notes on it."""
    work = context.work
    if not work.never:
        return []
    pool = candidates(context)
    tried: dict[str, tuple[dict[str, float], float | None]] = {}
    for name, counts in (("neutral", {}), ("its rubric's mean", _means(context, pool))):
        work.never_counts = counts
        scores = cross_validated_alpha(context, candidates(context))[2]
        tried[name] = counts, None if scores is None else auc(np.array(scores), pool.labels)
    best = max(tried, key=lambda name: (tried[name][1] or 0.0, name == "neutral"))
    work.never_counts = tried[best][0]
    share = len(work.never) / max(sum(len(each) for each in work.answers.values()), 1)
    figures = ", ".join(f"{name} {value:.3f}" for name, (_, value) in tried.items() if value is not None)
    by = f"AUC by cross-validation: {figures}" if figures else "too few labels to choose by cross-validation"
    return [f"“Never came up” ({share:.0%} of answers) counts as {best} ({by})."]


def _means(context: LearnContext, pool: Candidates) -> dict[str, float]:
    """Mean value of each rubric where its occasion came up."""
    work = context.work
    found = {}
    for rubric in pool.rubrics:
        came_up = [
            value
            for c in pool.conversations
            if (c.id, rubric.id) not in work.never and (value := work.answers[c.id].get(rubric.id)) is not None
        ]
        if came_up:
            found[rubric.id] = float(np.mean(came_up))
    return found


def choose(context: LearnContext) -> dict[str, Any]:
    """Choose rubrics on training conversations; return the choice as JSON values."""
    told = count_never(context)
    pool, settings = candidates(context), context.settings
    hints, shares, p, families = True, None, None, {}
    if by_evidence(context):
        weighed, every = Weighed.of(pool, settings), np.ones(len(pool.labels), dtype=bool)
        alpha, table, held_out_scores, hints, notes = weighed.cross_validated(settings)
        found, narrowed = weighed.weigh(every)
        order = weighed.order(every, alpha, hints=hints)
        n = len(pool.rubrics)
        chosen = in_order(Pool.of(pool.values, pool.labels, pool.kinds % 2, pool.ids, (n, n)), alpha, order)
        families = families_of(weighed, narrowed)
        shares, p = found.chosen, dict(zip(pool.ids, found.p.tolist(), strict=True))
    else:
        alpha, table, held_out_scores, notes = cross_validated_alpha(context, pool)
        rng = np.random.default_rng(settings.seed)
        budget = both_lists(settings.budget, pool.kinds)
        chosen = select(pool.values, pool.labels, pool.kinds, pool.ids, budget, alpha, rng, settings.policy)
        shares = stable_shares(context, pool, alpha)
    notes += told
    if missing := int((~pool.answered).sum()):
        notes.append(
            f"{missing} of {pool.answered.size} training answers are missing; each counts as its rubric's mean"
        )
    return {
        "alpha": alpha,
        "alphas": table,
        "held_out_scores": held_out_scores,
        "hints": hints,
        "p": p,
        "families": families,
        "chosen": [pool.ids[step.index] for step in chosen.steps],
        "choices": choices(chosen, pool.ids, shares),
        "dropped": dropped(chosen, pool.ids, shares) | pool.unjudged,
        "notes": notes,
        "never": context.work.never_counts,
    }


def chooser(
    context: LearnContext, pool: Candidates, selection: dict[str, Any]
) -> Callable[[Bools, np.random.Generator], Ints]:
    """Return the way in which a run chose, for choices by some conversations.

    It takes which `[conversation]`, those beyond the pool's own apart, and gives columns.
    """
    settings, alpha = context.settings, selection["alpha"]
    if by_evidence(context):
        weighed = Weighed.of(pool, settings)
        return lambda rows, _: weighed.order(rows[: len(pool.labels)], alpha, hints=selection["hints"])
    budget = both_lists(settings.budget, pool.kinds)

    def chosen(rows: Bools, rng: np.random.Generator) -> Ints:
        own = rows[: len(pool.labels)]
        values, up = pool.values[own], pool.labels[own]
        return select(values, up, pool.kinds, pool.ids, budget, alpha, rng, settings.policy).chosen

    return chosen


def by_evidence(context: LearnContext) -> bool:
    """Tell whether labels say which rubrics stay: those of built-in roles, whose answers cost nothing."""
    return bool(context.work.pool) and context.judge_record.kind != LLM and context.settings.method == "rubicon"


def cross_validated_alpha(
    context: LearnContext, pool: Candidates
) -> tuple[float, list[dict[str, Any]], list[float] | None, list[str]]:
    """Choose α by cross-validation.

    Returns α, its table, out-of-fold NetSAT, and warnings.
    """
    settings = context.settings
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
    table = [
        {"alpha": row.alpha, "mean_auc": row.mean, "deviation": row.deviation, "folds": row.folds}
        for row in choice.table
    ]
    return choice.alpha, table, choice.held_out.tolist(), []


def stable_shares(context: LearnContext, pool: Candidates, alpha: float) -> Floats | None:
    """Return how often bootstrap resamples choose each rubric [rubric]; None if switched off."""
    settings = context.settings
    if not settings.resamples:
        return None
    context.progress.start("stability", settings.resamples)
    return stability(
        pool.values,
        pool.labels,
        pool.kinds,
        pool.ids,
        both_lists(settings.budget, pool.kinds),
        alpha,
        np.random.default_rng([settings.seed, 1]),
        policy=settings.policy,
        resamples=settings.resamples,
        progress=lambda _done, _wanted: context.progress.advance("stability"),
    )


def choices(chosen: Selection, ids: Sequence[str], shares: Floats | None) -> dict[str, Any]:
    """Return the loss terms of the set when each chosen rubric was added."""
    return {
        ids[one.index]: {
            "step": number,
            "loss": one.loss,
            "correctness": one.correctness,
            "sharpness": one.sharpness,
            "stability": None if shares is None else float(shares[one.index]),
        }
        for number, one in enumerate(chosen.steps, start=1)
    }


def dropped(chosen: Selection, ids: Sequence[str], shares: Floats | None) -> dict[str, Any]:
    """Return the last loss and the replacement of each rubric that was not chosen."""
    return {
        ids[one.index]: {
            "loss": one.loss,
            "beaten_by": None if one.beaten_by is None else ids[one.beaten_by],
            "stability": None if shares is None else float(shares[one.index]),
        }
        for one in chosen.drops
    }
