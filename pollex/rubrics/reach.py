"""How far a set reaches, on held-out conversations."""

from __future__ import annotations

from pollex.measures.intervals import Figure
from pollex.rubrics.records import Record
from pollex.rubrics.rubric import Polarity

MORE = 20
"""Labels whose worth is told."""


class CurvePoint(Record):
    """Mean AUC of rubrics that were chosen with so many labels."""

    labels: int
    auc: Figure


class Reach(Record):
    """How far a set reaches, on held-out conversations.

    Attributes:
        coverage: Share of thumbs down in which at least one headline rubric of dissatisfaction holds.
        false_alarms: Likewise of thumbs up.
        recall_up: Share of thumbs up that are decided to be good, by the probability.
        recall_down: Share of thumbs down that are decided to be bad.
        beside: The strongest plain method, by cross-validation on training conversations.
        recovered: (AUC − ½) of the rubrics over that of the strongest plain method.
        correlation: By side, mean correlation of its rubrics.
        curve: AUC by number of labels; empty where it was not measured, and `more` says why.
        more: What `MORE` labels more are worth in AUC.
    """

    coverage: Figure
    false_alarms: Figure
    recall_up: Figure
    recall_down: Figure
    beside: str
    recovered: Figure
    correlation: dict[Polarity, Figure]
    curve: tuple[CurvePoint, ...] = ()
    more: Figure
