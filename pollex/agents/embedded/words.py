"""Likeness of texts by their words: what scoring reads in place of vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot

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
    weights = dict(map(weighed, _WORD.findall(text.casefold())))
    return Terms(weights, hypot(*weights.values()))


@lru_cache(maxsize=65536)
def weighed(word: str) -> tuple[str, float]:
    """Return the stem of a word, and its weight."""
    return stem(word), rarity(word)


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


class Examples:
    """Texts that others are compared with, by the words that they hold."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths = [terms_of(text).length for text in texts]
        self._holding: dict[str, list[tuple[int, float]]] = {}
        for place, text in enumerate(texts):
            for word, weight in terms_of(text).weights.items():
                self._holding.setdefault(word, []).append((place, weight))

    def nearest(self, text: str) -> float:
        """Return the highest likeness of a text to any of them."""
        own, sums = terms_of(text), dict[int, float]()
        for word in sorted(own.weights.keys() & self._holding.keys()):  # in the order in which `likeness` adds up
            weight = own.weights[word]
            for place, other in self._holding[word]:
                sums[place] = sums.get(place, 0.0) + weight * other
        return max((total / (own.length * self._lengths[place]) for place, total in sums.items()), default=0.0)
