"""Fragments by which a text is known again in others: runs of words that stand nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

RUN = 5
"""Words of a fragment; a shorter turn is a fragment as a whole."""
FEWEST = 2
_WORD = re.compile(r"\w+")


def fragments_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words of a text."""
    words = _WORD.findall(text.casefold())
    if FEWEST <= len(words) <= RUN:
        yield tuple(words)
    yield from (tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1))


class Traces:
    """What tells that a text quotes one of some texts.

    Args:
        texts: Whose quotes are looked for.
        others: Texts whose fragments tell nothing: greetings, and what assistants say to everybody.
    """

    def __init__(self, texts: Iterable[str], others: Iterable[str] = ()) -> None:
        found = {fragment for text in texts for fragment in fragments_of(text)}
        for other in others:
            if found:
                found.difference_update(fragments_of(other), _short(other))
        self._runs = {one for one in found if len(one) == RUN}
        self._short = [
            re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, one)) + r"(?!\w)") for one in found - self._runs
        ]

    def within(self, text: str) -> bool:
        """Tell whether a text quotes one of them."""
        if self._runs and not self._runs.isdisjoint(fragments_of(text)):
            return True
        return bool(self._short) and any(short.search(folded) for folded in [text.casefold()] for short in self._short)


def _short(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    for length in range(FEWEST, RUN):
        yield from (tuple(words[start : start + length]) for start in range(len(words) - length + 1))
