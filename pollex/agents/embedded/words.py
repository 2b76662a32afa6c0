"""Likeness of texts by their words: what scoring reads in place of vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from pollex.agents.embedded.events.sentences import stem

COMMONEST = 7.5
"""Zipf frequency from which on a word counts next to nothing."""

LEAST = 0.05
_WORD = re.compile(r"\w+(?:['’]\w+)?")


@dataclass(frozen=True, slots=True)
class Terms:
    """The stems of a text, weighed by rarity.

    Attributes:
        weights: By stem.
        length: Euclidean, of the weights.
    """

    weights: dict[str, float]
    length: float


@lru_cache(maxsize=8192)
def terms_of(text: str) -> Terms:
    """Weigh the stems of a text by how rare their words are in English."""
    weights = {stem(word): rarity(word) for word in _WORD.findall(text.casefold())}
    return Terms(weights, sqrt(sum(weight * weight for weight in weights.values())))


@lru_cache(maxsize=65536)
def rarity(word: str) -> float:
    """Return the weight of a word, from 0 to 1."""
    from wordfreq import zipf_frequency  # a fifth of a second, with its list; only what reads likeness needs it

    return max(LEAST, 1 - zipf_frequency(word, "en") / COMMONEST)


def likeness(one: Terms, other: Terms) -> float:
    """Cosine of two texts, from 0 to 1."""
    shared = one.weights.keys() & other.weights.keys()
    if not shared:
        return 0.0
    return sum(one.weights[word] * other.weights[word] for word in sorted(shared)) / (one.length * other.length)


def nearest(text: str, examples: Sequence[str]) -> float:
    """Highest likeness of a text to any of the examples."""
    own = terms_of(text)
    return max((likeness(own, terms_of(example)) for example in examples), default=0.0)
