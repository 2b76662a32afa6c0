"""Headline lists: rubrics to act on, near twins under one entry; those that went the other way stand apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Floats
from pollex.rubrics.records import ChosenRubric, Segment
from pollex.rubrics.rubric import BUILT_IN, Polarity, Rubric
from pollex.rubrics.worth import speaks_against
from pollex.selection.multi_split import ALIKE, correlations

SAYS = 0.5
"""Correlation of answers from which on a model's rubric says what a built-in one says."""


@dataclass(frozen=True)
class Headline:
    """An entry of a headline list.

    Attributes:
        also: Near twins of the rubric, which stand under it.
    """

    rubric: ChosenRubric
    also: tuple[ChosenRubric, ...] = ()


def headlines(rubrics: Sequence[ChosenRubric], side: Polarity) -> list[Headline]:
    """List what leads on a side, most thumbs explained first, without what went the other way."""
    own = [one for one in in_order(rubrics) if one.polarity == side and _leads(one)]
    mixed = has_models(rubrics)
    own.sort(key=lambda one: (mixed and one.answered_by == BUILT_IN, -thumbs_explained(one)))
    known = {rubric.id: rubric for rubric in own}
    groups: dict[str, list[ChosenRubric]] = {}
    for rubric in own:
        groups.setdefault(_first_of(rubric, known), []).append(rubric)
    return [Headline(first, tuple(rest)) for first, *rest in groups.values()]


def _leads(rubric: ChosenRubric) -> bool:
    return rubric.headlined and not rubric.outcome and not went_the_other_way(rubric)


def has_models(rubrics: Sequence[Rubric]) -> bool:
    """Tell whether a set has rubrics in a model's words: these lead, and built-in ones serve them."""
    return any("@" in one.source and not one.answered_by for one in rubrics)


def outcomes_of(rubrics: Sequence[ChosenRubric], side: Polarity) -> list[ChosenRubric]:
    """List what tells how it came out on a side, and restates the thumb: no cause to act on."""
    own = [
        one
        for one in in_order(rubrics)
        if one.polarity == side and one.outcome and one.stands != "hint" and not one.circumstance
    ]
    return [one for one in own if not went_the_other_way(one)]


def said_of(rubrics: Sequence[ChosenRubric], side: Polarity) -> list[ChosenRubric]:
    """List words that labels bear out on a side, most thumbs explained first, in whatever language they are."""
    own = [one for one in in_order(rubrics) if one.polarity == side and told_as_words(one)]
    return sorted(
        (one for one in own if not went_the_other_way(one)), key=lambda one: -thumbs_explained(one)
    )


def told_as_words(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric is words, and proven or likely: a finding, whatever they mean."""
    shown = rubric.source.startswith("phrase:") and not (rubric.yields or rubric.circumstance)
    return shown and rubric.stands in ("proven", "likely")


def topics_apart(segments: Sequence[Segment]) -> list[Segment]:
    """List the topics that go better or worse than the rest: whose interval leaves out the share of the rest."""
    return [one for one in segments if one.apart]


def along_with(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List what goes along with a circumstance that explains its difference: what it says is no cause to act on."""
    return [one for one in in_order(rubrics) if one.circumstance and one.stands != "hint"]


def thumbs_explained(rubric: ChosenRubric) -> float:
    """Return the difference of the shares of thumbs down, times how often a rubric holds; 0 where nobody measured."""
    worth = rubric.worth
    if worth is None or worth.down_with.value is None or worth.down_others.value is None:
        return 0.0
    return abs(worth.down_with.value - worth.down_others.value) * (worth.holds.value or 0.0)


def hints_of(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List deeds and outcomes of which too few thumbs can tell, without what went the other way."""
    return [
        one
        for one in in_order(rubrics)
        if one.leads and not (one.headlined or _told_elsewhere(one)) and not went_the_other_way(one)
    ]


def _told_elsewhere(rubric: ChosenRubric) -> bool:
    return (rubric.outcome or rubric.circumstance is not None) and rubric.stands != "hint"


def sounds_of(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List rubrics of tone, how people sound, without what went the other way."""
    return [
        one
        for one in in_order(rubrics)
        if not (one.leads or _told_elsewhere(one) or told_as_words(one))
        and not went_the_other_way(one)
    ]


def turned(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """List rubrics whose thumbs on held-out conversations went the other way; where all labels teach, none stays."""
    return list(filter(went_the_other_way, in_order(rubrics)))


def went_the_other_way(rubric: ChosenRubric) -> bool:
    """Tell whether thumbs on held-out conversations went the other way than a rubric's side says."""
    return rubric.worth is not None and speaks_against(rubric.worth, rubric.polarity)


def _first_of(rubric: ChosenRubric, known: dict[str, ChosenRubric]) -> str:
    while rubric.twin_of in known:
        rubric = known[rubric.twin_of]
    return rubric.id


def in_order(rubrics: Sequence[ChosenRubric]) -> list[ChosenRubric]:
    """Sort by the order of choice; rubrics that a person added come last."""
    return sorted(
        rubrics, key=lambda rubric: rubric.choice.step if rubric.choice else len(rubrics) + 1
    )


def twins(rubrics: Sequence[Rubric], values: Floats) -> dict[str, str]:
    """Return the earlier twin of each headline rubric that has one, by id.

    Twins are of one side, and are the same event with objects of different breadth, or are answered
    alike.

    Args:
        rubrics: In the order of choice.
        values: Terms of NetSAT on training conversations `[conversation, rubric]`.
    """
    mixed = has_models(rubrics)
    own = np.array([mixed and rubric.answered_by == BUILT_IN for rubric in rubrics], dtype=bool)
    # A built-in rubric stands under a model's that says about the same, whichever was chosen first.
    alike = correlations(values) >= np.where(own[:, None] != own[None, :], SAYS, ALIKE)
    leading = sorted(
        (i for i, rubric in enumerate(rubrics) if rubric.leads), key=lambda i: (bool(own[i]), i)
    )
    found = {}
    for place, j in enumerate(leading):
        for i in leading[:place]:
            same_side = rubrics[i].polarity == rubrics[j].polarity
            if same_side and (
                alike[i, j] or _of_other_breadth(rubrics[i].source, rubrics[j].source)
            ):
                found[rubrics[j].id] = rubrics[i].id
                break
    return found


def _of_other_breadth(one: str, other: str) -> bool:
    (kind, _, narrow), (same, _, narrower) = one.partition(" "), other.partition(" ")
    return kind == same and kind.startswith("event:") and bool(narrow) != bool(narrower)
