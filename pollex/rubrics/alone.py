"""Figures of each rubric alone, and its most frequent answers, on training conversations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import auc_of_scores
from pollex.measures.intervals import Figure
from pollex.rubrics.records import Alone, ChosenRubric, JudgedBy, Worth
from pollex.rubrics.worth import percent, share_of

NEARLY_ALL = 0.9
"""A rubric with one answer in a greater share of conversations tells hardly anything."""
RESAMPLES = 500

BY: dict[JudgedBy, str] = {
    "event": "an event",
    "signal": "a signal of how people sound",
    "words": "the words that it quotes",
    "likeness": "likeness of turns to its words, which is weak",
    "model": "the model",
    "distilled": "what was learned from the model's answers",
}

REMEDIES: dict[JudgedBy, str] = {
    "event": "reword it as something that happens more often, or remove it",
    "signal": "reword it as something that users do more often, or remove it",
    "words": "quote words that are said more often, or remove it",
    "likeness": "name an act and an object of your domain, quote words that are said, or judge it with --model",
    "model": "name the occasion on which it can be told, or remove it",
    "distilled": "leave it to the model (`pollex distill --hard model`), or remove it",
}


def alone_of(
    values: Floats, picked: Sequence[str], up: Bools, by: JudgedBy, rng: np.random.Generator, together: Ints
) -> Alone:
    """Return the record of one rubric.

    Args:
        values: As NetSAT adds them up, with their sign `[conversation]`.
        picked: The answer of each conversation, in words.
    """
    commonest, n = Counter(picked).most_common(1)[0]
    return Alone(
        by=by,
        spread=float(values.std()),
        commonest=commonest,
        share=share_of(n, len(picked)),
        auc=auc_of_scores(values, up, rng, RESAMPLES, together),
    )


@dataclass(frozen=True)
class Detector:
    """By what a rubric is judged, and how it does by itself.

    Attributes:
        auc: Of its values alone.
        worth: Where it holds; None where that wasn't measured.
    """

    by: JudgedBy
    auc: Figure
    worth: Worth | None

    def __str__(self) -> str:
        auc = "without an AUC" if self.auc.value is None else f"AUC alone {self.auc.value:.2f}"
        if self.worth is None or self.worth.holds.value is None:
            return f"by {BY[self.by]}: {auc}"
        there, elsewhere = self.worth.down_with, self.worth.down_without
        both = there.value is not None and elsewhere.value is not None
        down = f", {percent(there)} of them thumbs down, {percent(elsewhere)} elsewhere" if both else ""
        return f"by {BY[self.by]}: {auc}; it holds in {percent(self.worth.holds)} of conversations{down}"


def detector_of(rubric: ChosenRubric) -> Detector | None:
    """Return by what a rubric was judged when it was fitted; None before that."""
    return None if (alone := rubric.alone) is None else Detector(alone.by, alone.auc, rubric.worth)


ANEW = "Judged anew: "
"""How a note begins on a rubric that lost what it was judged by."""


def anew_in_words(text: str, before: Detector, now: Detector) -> str:
    """Say by what a rubric is judged now and was before, with AUC and shares."""
    return f"{ANEW}“{text}” is judged {now}. Before, {before}."


def anew_told(before: Sequence[ChosenRubric], fitted: Sequence[ChosenRubric]) -> list[str]:
    """Say it of each rubric that was fitted anew."""
    now = {rubric.id: detector_of(rubric) for rubric in fitted}
    both = [(rubric.text, detector_of(rubric), now.get(rubric.id)) for rubric in before if rubric.anew]
    return [anew_in_words(text, old, new) for text, old, new in both if old and new]


def nearly_constant(alone: Alone | None) -> bool:
    """Tell whether a rubric has nearly always the same answer."""
    return alone is not None and (alone.share.value or 0.0) > NEARLY_ALL
