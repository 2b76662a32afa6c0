"""Words looked for in every turn: the texts are read piece by piece, so that there is progress to tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.web.lens import Lens
from pollex.web.site import Site

PIECE = 16_384
"""Texts that are read at once: as many as lie together in the store's files."""

PIECES = "SELECT seq FROM texts ORDER BY seq"
ANY_TURN = """
    SELECT DISTINCT text_hash FROM texts WHERE seq > $1 AND seq <= $2 AND regexp_matches(turns, $3, 'il')
"""


@dataclass(frozen=True)
class Found:
    """What a piece brought.

    Attributes:
        hashes: Of the texts that have the words.
        done: Texts that were read, of `total`.
    """

    hashes: frozenset[str]
    done: int
    total: int


def search(store: Store, run: str, words: str, piece: int = PIECE) -> Iterator[Found]:
    """Look for words, ignoring case, and tell after each piece of the texts what was found in it."""
    stored = json.dumps(words, ensure_ascii=False)[1:-1]  # turns are kept as JSON
    places = [row["seq"] for row in store.ask(run, PIECES)]
    # Texts of several runs may have the same number, and then belong to one piece.
    ends = [*dict.fromkeys([*places[piece - 1 :: piece], *places[-1:]])]
    before = -1
    for place, end in enumerate(ends, 1):
        rows = store.ask(run, ANY_TURN, [before, end, stored])
        before = end
        yield Found(frozenset(row["text_hash"] for row in rows), min(place * piece, len(places)), len(places))


def with_words(site: Site, run: Run, lens: Lens, words: str) -> frozenset[str]:
    """Return hashes of the texts that have words in any turn; they are kept."""
    return site.kept(
        _key(lens, words), lambda: frozenset[str]().union(*(one.hashes for one in search(site.store, run.id, words)))
    )


def keep(site: Site, lens: Lens, words: str, hashes: frozenset[str]) -> None:
    """Keep what a search has found, for the list of it."""
    site.kept(_key(lens, words), lambda: hashes)


def _key(lens: Lens, words: str) -> tuple[str, ...]:
    return "search", lens.version, words
