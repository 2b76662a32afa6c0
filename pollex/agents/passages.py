"""Passages of documents, found by BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pollex.agents.checks import own_words

LONGEST = 1500
"""Characters of a passage, unless one paragraph is longer."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document.

    Attributes:
        document: Name of its file.
    """

    document: str
    text: str

    def has(self, quote: str) -> bool:
        """Return whether the passage has these words; see `located` for what may differ."""
        return bool(own_words(self.text, quote))


def passages_of(documents: Mapping[str, str]) -> list[Passage]:
    """Cut documents at empty lines into passages."""
    found: list[Passage] = []
    for name, text in documents.items():
        piece = ""
        for paragraph in filter(None, (part.strip() for part in text.split("\n\n"))):
            if piece and len(piece) + len(paragraph) > LONGEST:
                found.append(Passage(name, piece))
                piece = ""
            piece = f"{piece}\n\n{paragraph}".strip()
        if piece:
            found.append(Passage(name, piece))
    return found


class Passages:
    """An index of passages.

    Attributes:
        all: Every passage, in the order of the documents.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.all = tuple(passages)

    def named(self, documents: Sequence[str], most: int) -> list[Passage]:
        """Return the first passages of these documents."""
        return [passage for passage in self.all if passage.document in documents][:most]

    def best(self, query: str, most: int) -> list[Passage]:
        """Return passages that share words with the query, the best first."""
        known = [word for word in _words([query])[0] if word in self._index.vocab_dict]
        if not known:
            return []
        scores = self._index.get_scores(known)
        order = np.argsort(-scores, kind="stable")[:most]
        return [self.all[i] for i in order if scores[i] > 0]

    @cached_property
    def _index(self) -> Any:
        from bm25s import BM25  # only simulations need it

        index = BM25()
        index.index(_words([passage.text for passage in self.all]), show_progress=False)
        return index


def _words(texts: list[str]) -> list[list[str]]:
    from bm25s import tokenize  # only simulations need it

    found: list[list[str]] = tokenize(texts, stopwords=None, show_progress=False, return_ids=False)
    return found
