"""Data of the report on a rubric set, beside the rubric set itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.reports.numbers import known
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric_set import RubricSet

MOST_PLACES = 200
MOST_DROPPED = 400


@dataclass(frozen=True)
class LeftOut:
    """One item that was left out.

    Attributes:
        where: Conversation id, or file and line.
        reason: Why, in one clause; equal reasons are shown together.
        remedy: What to do about it; may be empty.
    """

    where: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True)
class MeanAnswer:
    """Mean agreement with a rubric, 0 … 10, by label; None without answers."""

    positive: float | None
    negative: float | None


@dataclass(frozen=True)
class Scores:
    """Scores of one side as arrays.

    Attributes:
        netsat: `[conversation]`.
        positive: Labels `[conversation]`.
        probability: P(positive) by a model that did not see it `[conversation]`; NaN where there is none.
        together: Conversations that belong together have the same number `[conversation]`.
    """

    netsat: Floats
    positive: Bools
    probability: Floats
    together: Ints

    @classmethod
    def of(cls, scores: Sequence[LabelledScore], side: Literal["training", "held_out"]) -> Scores:
        """Collect the conversations of `side` that have a score."""
        rows = [score for score in scores if score.side == side and known(score.netsat)]
        return cls(
            netsat=np.array([row.netsat for row in rows], float),
            positive=np.array([row.positive for row in rows], bool),
            probability=np.array([math.nan if row.probability is None else row.probability for row in rows], float),
            together=np.array([-place if row.block is None else row.block for place, row in enumerate(rows, 1)], int),
        )

    def __len__(self) -> int:
        return len(self.netsat)

    @property
    def both_classes(self) -> bool:
        """Whether there are positive and negative conversations."""
        return bool(self.positive.any() and not self.positive.all())

    @property
    def with_probability(self) -> Scores:
        """The conversations that have a probability."""
        has = ~np.isnan(self.probability)
        return Scores(self.netsat[has], self.positive[has], self.probability[has], self.together[has])


def sides_of(rubrics: RubricSet, scores: Sequence[LabelledScore]) -> dict[str, Scores]:
    """Group scores by the name of their side, in display order."""
    held_out = {"Held out": Scores.of(scores, "held_out")} if rubrics.held_out else {}
    return held_out if rubrics.data.folds else {"Training": Scores.of(scores, "training")} | held_out


@dataclass(frozen=True)
class RubricCard:
    """A rubric with everything that is shown of it.

    Attributes:
        conversations: How many conversations its reasons are from.
        quoted: How many quotes its reasons have; the rubric has some of them as examples.
        means: None where agreement was not measured.
    """

    rubric: ChosenRubric
    conversations: int
    quoted: int
    means: MeanAnswer | None


def cards_of(rubrics: RubricSet, kind: str, means: Mapping[str, MeanAnswer]) -> list[RubricCard]:
    """Prepare the rubrics of one kind in the order of choice; added ones last."""
    reasons, last = {reason.id: reason for reason in rubrics.reasons}, len(rubrics.rubrics) + 1
    own = [rubric for rubric in rubrics.rubrics if rubric.polarity == kind]
    cards = []
    for rubric in sorted(own, key=lambda rubric: rubric.choice.step if rubric.choice else last):
        behind = [reasons[id_] for id_ in rubric.reason_ids if id_ in reasons]
        quoted = max(len(rubric.quotes), sum(len(reason.quotes) for reason in behind))
        conversations = len({reason.conversation_id for reason in behind})
        cards.append(RubricCard(rubric, conversations, quoted, means.get(rubric.id)))
    return cards


def agreement_range(means: Iterable[MeanAnswer]) -> tuple[float, float]:
    """Return integers around all means, since the full scale would hide differences."""
    values = [value for mean in means for value in (mean.positive, mean.negative) if known(value)]
    return (float(math.floor(min(values))), float(math.ceil(max(values)))) if values else (0.0, 10.0)


def dropped_groups(dropped: Sequence[DroppedRubric]) -> dict[str, list[DroppedRubric]]:
    """Group rubrics that are not in the set: first those not chosen, then duplicates."""
    groups = {
        "not chosen": [rubric for rubric in dropped if rubric.duplicate_of is None],
        "merged into another rubric": [rubric for rubric in dropped if rubric.duplicate_of is not None],
    }
    return {name: rows for name, rows in groups.items() if rows}


def skipped_groups(skipped: Sequence[LeftOut], scores: Sequence[LabelledScore]) -> dict[tuple[str, str], list[str]]:
    """Group what was skipped by reason and remedy, the most frequent reason first."""
    named = {item.where for item in skipped}
    unscored = [
        LeftOut(score.conversation_id, f"no score: {score.outcome}")
        for score in scores
        if not known(score.netsat) and score.conversation_id not in named
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for item in [*skipped, *unscored]:
        groups.setdefault((item.reason, item.remedy), []).append(item.where)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))
