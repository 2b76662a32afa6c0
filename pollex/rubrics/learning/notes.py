"""Notes on a set: the origin of its rubrics, and reasons for dropped ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.conversations.logs import positives
from pollex.conversations.splits import blocks
from pollex.measures.intervals import FEWEST
from pollex.rubrics.alone import BY, REMEDIES, nearly_constant
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.measured import Unseen
from pollex.rubrics.records import Alone, DroppedRubric
from pollex.rubrics.rubric import Rubric
from pollex.text import count


def dropped_rubrics(material: Material, selection: dict[str, Any]) -> list[DroppedRubric]:
    """List every rubric of the pool that is not in the set, duplicates first."""
    pool = {rubric.id: rubric for rubrics in material.pool.values() for rubric in rubrics}
    kept = {rubric.id: rubric for rubric in material.kept}
    texts = {id_: rubric.text for id_, rubric in (pool | kept).items()}
    side_of = {id_: rubric.polarity for id_, rubric in (pool | kept).items()}
    duplicates = [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=pool[id_].polarity,
            support=len(pool[id_].reason_ids),
            reason=f"says the {'same as' if pool[id_].polarity == side_of[into] else 'reverse of'} “{texts[into]}”",
            duplicate_of=into,
        )
        for id_, into in material.merged.items()
    ]
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


NO_EVENTS = "No rubric is an event of the domain"
"""How the note on a language begins that events are not read in."""

SMALL = 50
"""Held-out conversations of the smaller class below which a figure is called noisy."""


def caveats(material: Material, unseen: Unseen, silent: int, language: Sequence[str]) -> list[str]:
    """List caveats about the figures.

    Args:
        unseen: The conversations in the figures.
        silent: Training conversations that gave no reasons.
        language: What the log lacks because of its language.
    """
    notes, held_out = [*material.logs.lost_labels, *material.logs.note_on_repeats], len(material.held_out)
    truth = positives(unseen.conversations)
    if not unseen.folds and (left_out := held_out - len(truth)):
        notes.append(
            f"Left out of all figures: {left_out} of {count(held_out, 'held-out conversation')}, because some rubric "
            "has no answer there, so that there is no score."
        )
    if not (held_out or unseen.folds):
        notes.append("Nothing was held out, so there are no figures for new conversations.")
    elif len(truth) and (smaller := int(min(truth.sum(), (~truth).sum()))) < SMALL:
        notes.append(
            f"The smaller class has {count(smaller, 'measured conversation')}: figures vary a lot from split to "
            "split, so read the intervals rather than the figures; a figure without an interval says little."
        )
    labelled = (*material.training, *material.held_out)
    if (apart := len(blocks(labelled))) < len(labelled):
        notes.append(
            "Conversations of one group (for example, one user) or with the same text count as one: the "
            f"{len(labelled)} labeled conversations count as {apart}. Intervals account for this, and need at least "
            f"{FEWEST}. A window with a guarantee does not: it promises too much if conversations of a group are alike."
        )
    budget = (0, 0) if material.by_evidence else material.settings.budget  # by evidence it is a maximum
    n_sat, n_dsat = (sum(r.polarity == kind for r in material.chosen) for kind in ("sat", "dsat"))
    if n_sat < budget[0] or n_dsat < budget[1]:
        notes.append(f"The pool had fewer rubrics than the budget: {n_sat} SAT and {n_dsat} DSAT were chosen.")
    notes += language
    if failed := len(material.table.failures):
        notes.append(
            f"{count(failed, 'conversation lacks', 'conversations lack')} an answer; "
            "`pollex trace` of this run says why."
        )
    if silent:
        notes.append(f"{count(silent, 'training conversation')} gave no reasons; `pollex trace` of this run says why.")
    return notes


def all_but_constant(chosen: Sequence[Rubric], alone: Mapping[str, Alone]) -> list[str]:
    """List handwritten rubrics that are nearly always answered alike."""
    return [
        f"“{rubric.text}” is answered “{found.commonest}” in {found.share.value:.0%} of {found.share.n} training "
        f"conversations (judged by {BY[found.by]}): {REMEDIES[found.by]}."
        for rubric in chosen
        if not rubric.reason_ids and nearly_constant(found := alone[rubric.id])
    ]


NOT_THE_MODELS = "rubrics are the model's: "
"""Words of the note on a model whose reasons were left out."""


def refusals(refused: Mapping[str, int]) -> list[str]:
    """List refused rubrics, one line for each cause."""
    return [
        f"{count(n, 'rubric text was', 'rubric texts were')} refused: {cause}" for cause, n in sorted(refused.items())
    ]
