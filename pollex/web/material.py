"""What the report is made from beside the rubric set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.graphs.learn.results import LabelledScore
from pollex.selection.losses import Bools, Floats, Ints


@dataclass(frozen=True)
class Skipped:
    """What was left out.

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
    """How much a rubric is agreed with on average, 0 … 10, by label; None where no conversation answers it."""

    positive: float | None
    negative: float | None


@dataclass(frozen=True)
class Scores:
    """The scores of one side as arrays.

    Attributes:
        netsat: `[conversation]`.
        positive: Labels `[conversation]`.
        probability: P(positive) by a model that did not see it `[conversation]`; NaN where there is none.
        together: Those that go together bear one number `[conversation]`.
    """

    netsat: Floats
    positive: Bools
    probability: Floats
    together: Ints

    @classmethod
    def of(cls, scores: Sequence[LabelledScore], side: Literal["training", "held_out"]) -> Scores:
        """Those of `side` that have a score."""
        rows = [score for score in scores if score.side == side and has_score(score)]
        return cls(
            netsat=np.array([row.netsat for row in rows], float),
            positive=np.array([row.positive for row in rows], bool),
            probability=np.array([math.nan if row.probability is None else row.probability for row in rows], float),
            together=np.array([-place if row.block is None else row.block for place, row in enumerate(rows, 1)], int),
        )

    @property
    def both_classes(self) -> bool:
        """Whether there are positive and negative conversations."""
        return bool(self.positive.any() and not self.positive.all())


def has_score(score: LabelledScore) -> bool:
    """Whether there is a number to plot."""
    return score.netsat is not None and math.isfinite(score.netsat)
