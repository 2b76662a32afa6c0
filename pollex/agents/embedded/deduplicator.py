"""The built-in deduplicator: rubrics whose texts are near are one."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded import NAME
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.roles import Deduplication
from pollex.rubrics.rubric import MAX_QUOTES, Rubric, content_id

VERSION = "2"
NEAR = 0.88

BY_DESIGN = ("signal:", "event:", "rate:")
"""Sources that differ by design, however alike their sentences are."""


class EmbeddedDeduplicator:
    """Merges rubrics of one polarity with similar texts, and keeps the best supported one.

    Args:
        near: Cosine from which on two rubrics say the same thing. Neighbours of neighbours are merged too.
    """

    name = NAME

    def __init__(self, embedder: Embedder, near: float = NEAR) -> None:
        self.embedder = embedder
        self.near = near

    @property
    def fingerprint(self) -> str:
        return content_id("deduplicator", VERSION, self.embedder.identity, f"{self.near:.6f}")

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Return the kept rubrics in their order, with the reasons of those merged into them."""
        kept: dict[str, Rubric] = {}
        merged: dict[str, str] = {}
        for group in self.groups(rubrics):
            ranked = sorted(group, key=lambda rubric: (-len(rubric.reason_ids), rubric.id))
            kept[ranked[0].id] = merge(ranked)
            merged |= {rubric.id: ranked[0].id for rubric in ranked[1:]}
        return Deduplication(kept=tuple(kept[r.id] for r in rubrics if r.id in kept), merged=merged)

    def groups(self, rubrics: Sequence[Rubric]) -> list[list[Rubric]]:
        """Group rubrics into connected components of near pairs of one polarity."""
        if not rubrics:
            return []
        vectors = self.embedder.embed([r.text for r in rubrics])
        found = components(vectors, [r.polarity for r in rubrics], self.near, [r.source for r in rubrics])
        return [[rubrics[i] for i in group] for group in found]


def components(
    vectors: npt.NDArray[np.float32], polarities: Sequence[str], near: float, sources: Sequence[str] = ()
) -> list[list[int]]:
    """Return connected components of near vectors [rubric, width].

    Two rubrics are linked where the cosine is at least `near` and the polarity the same. Different signals and events
    are never linked: what they measure differs by design, while their sentences differ in a word (“at length”,
    “briefly”).
    """
    kinds = np.array(polarities)
    linked = (vectors @ vectors.T >= near) & (kinds[:, None] == kinds[None, :])
    signals = np.array([source if source.startswith(BY_DESIGN) else "" for source in sources or [""] * len(kinds)])
    linked &= (signals[:, None] == signals[None, :]) | (signals[:, None] == "") | (signals[None, :] == "")
    return connected(linked)


def connected(linked: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Return the connected components of a symmetric matrix, each in ascending order."""
    from scipy.sparse.csgraph import connected_components  # a quarter of a second; only `learn` needs it

    count, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in range(count)]


def merge(ranked: Sequence[Rubric]) -> Rubric:
    """Give the first rubric the reasons of all, and quotes up to the maximum."""
    reasons = dict.fromkeys(id_ for rubric in ranked for id_ in rubric.reason_ids)
    quotes = dict.fromkeys(quote for rubric in ranked for quote in rubric.quotes)
    return ranked[0].model_copy(update={"reason_ids": tuple(reasons), "quotes": tuple(quotes)[:MAX_QUOTES]})
