"""Notes on a set: the origin of its rubrics, and reasons for dropped ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pollex.agents.embedded.events.language import language_of, needs_english
from pollex.agents.roles import Extraction
from pollex.conversations.splits import blocks
from pollex.graphs.learn.select import by_evidence
from pollex.graphs.learn.state import LearnContext, RunState
from pollex.measures.arrays import Bools
from pollex.measures.intervals import FEWEST
from pollex.rubrics.alone import BY, REMEDIES, nearly_constant
from pollex.rubrics.records import Alone, DroppedRubric
from pollex.rubrics.rubric import Reason, is_built_in
from pollex.text import count


def dropped_rubrics(context: LearnContext, selection: dict[str, Any]) -> list[DroppedRubric]:
    """List every rubric of the pool that is not in the set, duplicates first."""
    work = context.work
    texts = {rubric.id: rubric.text for rubrics in work.pool.values() for rubric in rubrics}
    texts |= {rubric.id: rubric.text for rubric in work.kept}
    pool = {rubric.id: rubric for rubrics in work.pool.values() for rubric in rubrics}
    side_of = {id_: rubric.polarity for id_, rubric in pool.items()} | {r.id: r.polarity for r in work.kept}
    duplicates = [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=pool[id_].polarity,
            support=len(pool[id_].reason_ids),
            reason=f"says the {'same as' if pool[id_].polarity == side_of[into] else 'reverse of'} “{texts[into]}”",
            duplicate_of=into,
        )
        for id_, into in work.merged.items()
    ]
    kept = {rubric.id: rubric for rubric in work.kept}
    return duplicates + [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=kept[id_].polarity,
            support=len(kept[id_].reason_ids),
            reason=why_dropped(drop, texts),
            loss=drop["loss"],
            stability=drop["stability"],
        )
        for id_, drop in selection["dropped"].items()
    ]


def why_dropped(drop: dict[str, Any], texts: dict[str, str]) -> str:
    """Describe why a rubric was dropped."""
    if "why" in drop:
        return str(drop["why"])
    if "answered" in drop:
        return f"answered on only {100 * drop['answered']:.0f} % of the training conversations"
    if drop["beaten_by"] is None:
        return "the budget of its kind is 0"
    return f"the set was better with “{texts[drop['beaten_by']]}”"


def reasons_of(context: LearnContext) -> tuple[Reason, ...]:
    """Return the reasons behind the chosen rubrics."""
    wanted = {id_ for rubric in context.work.chosen for id_ in rubric.reason_ids}
    every = [*context.work.reasons(context.training, "sat"), *context.work.reasons(context.training, "dsat")]
    return tuple(reason for reason in every if reason.id in wanted)


NO_EVENTS = "No rubric is an event of the domain"
"""How the note on a language begins that events are not read in."""

SMALL = 50
"""Held-out conversations of the smaller class below which a figure is called noisy."""


def caveats(context: LearnContext, truth: Bools) -> list[str]:
    """List caveats about the figures.

    Args:
        truth: Labels of the held-out conversations in the figures `[conversation]`.
    """
    notes, held_out = [*context.logs.lost_labels, *context.logs.note_on_repeats], len(context.held_out)
    if left_out := held_out - len(truth):
        notes.append(
            f"Left out of all figures: {left_out} of {count(held_out, 'held-out conversation')}, because some rubric "
            "has no answer there, so that there is no score."
        )
    if not held_out:
        notes.append("Nothing was held out, so there are no figures for new conversations.")
    elif len(truth) and (smaller := int(min(truth.sum(), (~truth).sum()))) < SMALL:
        notes.append(
            f"The smaller class has {count(smaller, 'held-out conversation')}: figures vary a lot from split to "
            "split, so read the intervals rather than the figures; a figure without an interval says little."
        )
    labelled = (*context.training, *context.held_out)
    if (apart := len(blocks(labelled))) < len(labelled):
        notes.append(
            "Conversations of one group (for example, one user) or with the same text count as one: the "
            f"{len(labelled)} labeled conversations count as {apart}. Intervals account for this, and need at least "
            f"{FEWEST}. A window with a guarantee does not: it promises too much if conversations of a group are alike."
        )
    budget = (0, 0) if by_evidence(context) else context.settings.budget  # by evidence it is a maximum
    n_sat, n_dsat = (sum(r.polarity == kind for r in context.work.chosen) for kind in ("sat", "dsat"))
    if n_sat < budget[0] or n_dsat < budget[1]:
        notes.append(f"The pool had fewer rubrics than the budget: {n_sat} SAT and {n_dsat} DSAT were chosen.")
    if reason := needs_english(context.training):
        notes.append(f"{reason}." if language_of(context.training) else f"{NO_EVENTS}: {reason}.")
    if failed := len(context.work.failures):
        notes.append(
            f"{count(failed, 'conversation lacks', 'conversations lack')} an answer; "
            "`pollex trace` of this run says why."
        )
    if silent := len(context.work.unextracted):
        notes.append(f"{count(silent, 'training conversation')} gave no reasons; `pollex trace` of this run says why.")
    return notes


def all_but_constant(work: RunState, alone: Mapping[str, Alone]) -> list[str]:
    """List handwritten rubrics that are nearly always answered alike."""
    return [
        f"“{rubric.text}” is answered “{found.commonest}” in {found.share.value:.0%} of {found.share.n} training "
        f"conversations (judged by {BY[found.by]}): {REMEDIES[found.by]}."
        for rubric in work.chosen
        if not rubric.reason_ids and nearly_constant(found := alone[rubric.id])
    ]


NOT_THE_MODELS = "rubrics are the model's: "
"""Words of the note on a model whose reasons were left out."""


def yielded(work: RunState) -> list[str]:
    """Say how many of a model's reasons were left out, and if most were or it gave no rubric, what it came to."""
    read = [found for found in work.extractions.values() if isinstance(found, Extraction)]
    left_out, unquoted = sum(found.dropped for found in read), sum(found.unquoted for found in read)
    given = left_out + sum(not is_built_in(reason.source) for found in read for reason in found.reasons)
    own = sum(not is_built_in(rubric.source) for rubric in work.chosen)
    if own and not left_out:
        return []
    others = f"; {left_out - unquoted} others quote no exchange, or copy it" if left_out > unquoted else ""
    why = f", {unquoted} because their quotes don't stand in the conversation{others}"
    if left_out == unquoted:
        why = ", because their quotes don't stand in the conversation"
    what = f"{left_out} of {count(given, 'reason')} {'was' if left_out == 1 else 'were'} left out{why}"
    if own and 2 * left_out < given:
        return [f"Of the model, {what}."]
    if not left_out:
        what = f"none of its {count(given, 'reason')} led to one that was chosen" if given else "it gave no reason"
    return [f"{own} of {len(work.chosen)} {NOT_THE_MODELS}{what}."]


def refusals(refused: dict[str, int]) -> list[str]:
    """List refused rubrics, one line for each cause."""
    return [
        f"{count(n, 'rubric text was', 'rubric texts were')} refused: {cause}" for cause, n in sorted(refused.items())
    ]
