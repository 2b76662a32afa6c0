"""How far people agree who answered the same question about the same texts."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from pollex.measures.correlations import estimate_krippendorff_alpha
from pollex.measures.intervals import Figure
from pollex.store.labels import Opinion

FEWEST_SHARED_TEXTS = 5
"""Texts that two people must share before anything is said of how they agree."""


def measure_agreement(of: Sequence[Opinion]) -> Figure:
    """Compute Krippendorff's alpha of annotators' answers, with its interval; numbers are options in an order."""
    if len(shared := find_texts_of_several(of)) < FEWEST_SHARED_TEXTS:
        return Figure(
            None,
            n=len(shared),
            undefined=f"too few: {len(shared)} texts have two answers, {FEWEST_SHARED_TEXTS} are needed",
        )

    # numbers take the place of texts, people and values; sorted values keep their order
    opinions_shared = []
    for opinion in of:
        if opinion.text_hash in shared:
            opinions_shared.append(opinion)

    texts, people, values = (
        sorted({getattr(opinion, name) for opinion in opinions_shared})
        for name in ("text_hash", "annotator", "value")
    )
    # words are in no order
    ordered = not any(isinstance(value, str) for value in values)

    return estimate_krippendorff_alpha(
        np.array([texts.index(opinion.text_hash) for opinion in opinions_shared]),
        np.array([people.index(opinion.annotator) for opinion in opinions_shared]),
        np.array([values.index(opinion.value) for opinion in opinions_shared]),
        tuple(map(float, values if ordered else range(len(values)))),
        "ordinal" if ordered else "nominal",
        np.random.default_rng(0),
    )


def find_texts_of_several(of: Sequence[Opinion]) -> set[str]:
    """Return the texts that several people answered about."""
    people: dict[str, set[str]] = defaultdict(set)
    for opinion in of:
        people[opinion.text_hash].add(opinion.annotator)
    return {text for text, who in people.items() if len(who) > 1}
