"""Where the rubrics of a set come from, and what became of those that are not in it."""

from __future__ import annotations

from typing import Any

from pollex.agents.rubrics import Reason
from pollex.graphs.learn.state import LearnContext
from pollex.graphs.rubric_records import DroppedRubric


def dropped_rubrics(context: LearnContext, selection: dict[str, Any]) -> list[DroppedRubric]:
    """Every rubric of the pool that is not in the set, duplicates first."""
    work = context.work
    texts = {rubric.id: rubric.text for rubrics in work.pool.values() for rubric in rubrics}
    texts |= {rubric.id: rubric.text for rubric in work.kept}
    pool = {rubric.id: rubric for rubrics in work.pool.values() for rubric in rubrics}
    duplicates = [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=pool[id_].polarity,
            support=len(pool[id_].reason_ids),
            reason=f"says the same as “{texts[into]}”",
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
    """In words."""
    if "answered" in drop:
        return f"answered on only {100 * drop['answered']:.0f} % of the training conversations"
    if drop["beaten_by"] is None:
        return "the budget of its kind is 0"
    return f"the set was better with “{texts[drop['beaten_by']]}”"


def reasons_of(context: LearnContext) -> tuple[Reason, ...]:
    """The reasons behind the chosen rubrics."""
    wanted = {id_ for rubric in context.work.chosen for id_ in rubric.reason_ids}
    every = [*context.work.reasons(context.training, "sat"), *context.work.reasons(context.training, "dsat")]
    return tuple(reason for reason in every if reason.id in wanted)
