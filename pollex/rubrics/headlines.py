"""Headline lists: rubrics to act on, near twins under one entry, those that held-out thumbs don't confirm last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Floats
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.worth import unconfirmed

ALIKE = 0.7
"""Correlation of the answers on training conversations from which on two rubrics of a side are twins."""


@dataclass(frozen=True)
class Headline:
    """An entry of a headline list.

    Attributes:
        also: Near twins of the rubric, which stand under it.
    """

    rubric: ChosenRubric
    also: tuple[ChosenRubric, ...] = ()


def headlines(rubrics: Sequence[ChosenRubric], side: Polarity) -> list[Headline]:
    """List what leads on a side in the order of choice, what is not confirmed last."""
    own = [rubric for rubric in in_order(rubrics) if rubric.polarity == side and rubric.headlined]
    own.sort(key=lambda rubric: rubric.worth is not None and unconfirmed(rubric.worth, side))
    known = {rubric.id: rubric for rubric in own}
    groups: dict[str, list[ChosenRubric]] = {}
    for rubric in own:
        groups.setdefault(_first_of(rubric, known), []).append(rubric)
    return [Headline(first, tuple(rest)) for first, *rest in groups.values()]


def _first_of(rubric: ChosenRubric, known: dict[str, ChosenRubric]) -> str:
    """Return the id that all twins of a rubric lead to."""
    while rubric.twin_of in known:
        rubric = known[rubric.twin_of]
    return rubric.id


def in_order(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """Sort by the order of choice; rubrics that a person added come last."""
    return sorted(rubrics, key=lambda rubric: rubric.choice.step if rubric.choice else len(rubrics) + 1)


def twins(rubrics: Sequence[Rubric], values: Floats) -> dict[str, str]:
    """Return the earlier twin of each headline rubric that has one, by id.

    Twins are of one side, and are the same event with objects of different breadth, or are answered alike.

    Args:
        rubrics: In the order of choice.
        values: Terms of NetSAT on training conversations `[conversation, rubric]`.
    """
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    alike = standard.T @ standard / max(len(values), 1) >= ALIKE
    leading = [i for i, rubric in enumerate(rubrics) if rubric.leads]
    found = {}
    for place, j in enumerate(leading):
        for i in leading[:place]:
            same_side = rubrics[i].polarity == rubrics[j].polarity
            if same_side and (alike[i, j] or _of_other_breadth(rubrics[i].source, rubrics[j].source)):
                found[rubrics[j].id] = rubrics[i].id
                break
    return found


def _of_other_breadth(one: str, other: str) -> bool:
    """Tell whether two sources are of the same event, once of any object and once of a certain one."""
    (kind, _, narrow), (same, _, narrower) = one.partition(" "), other.partition(" ")
    return kind == same and kind.startswith("event:") and bool(narrow) != bool(narrower)
