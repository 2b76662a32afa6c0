"""Figures of each rubric alone, and its most frequent answers, on training conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import auc_of_scores
from pollex.rubrics.records import Alone, JudgedBy
from pollex.rubrics.worth import share_of

NEARLY_ALL = 0.9
"""A rubric with one answer in a greater share of conversations tells hardly anything."""
RESAMPLES = 500

BY: dict[JudgedBy, str] = {
    "event": "an event",
    "signal": "a signal of how users sound",
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


def nearly_constant(alone: Alone | None) -> bool:
    """Tell whether a rubric has nearly always the same answer."""
    return alone is not None and (alone.share.value or 0.0) > NEARLY_ALL
