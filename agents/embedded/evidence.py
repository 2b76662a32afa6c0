"""From a rubric to the marks in the turns that speak for it.

A rubric's `source` says where to look: `signal:NAME` at that signal, `phrase:PARTY:WORDS` for those words, anything else
at the likeness of turns to the rubric's quotes, or to its own text when it has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.signals import all_signals
from pollex.agents.embedded.signals.signal import Party, Signal, words
from pollex.agents.embedded.view import Floats, View
from pollex.agents.rubrics import Quote, Rubric

SIGNALS = all_signals()


def evidence_of(rubric: Rubric, embedder: Embedder) -> Signal:
    """Where the marks for this rubric come from."""
    kind, _, rest = rubric.source.partition(":")
    if kind == "signal" and rest in SIGNALS:
        return SIGNALS[rest]
    if kind == "phrase" and ":" in rest:
        party, _, phrase = rest.partition(":")
        return phrase_signal("assistant" if party == "assistant" else "user", phrase)
    return Signal(rubric.source or rubric.id, party_of(rubric), rubric.text, likeness(rubric, embedder))


@lru_cache(maxsize=1024)
def phrase_signal(party: Party, phrase: str) -> Signal:
    """A turn carries it when it holds the phrase's words in a row."""
    pattern = r"\W+".join(re.escape(word) for word in phrase.split())
    statement = f"The {party} says “{phrase}”."
    return words(f"phrase:{party}:{phrase}", party, statement, rf"(?<!\w){pattern}(?!\w)")


def likeness(rubric: Rubric, embedder: Embedder) -> Callable[[View], Floats]:
    """Marks by cosine to the nearest quote. A conversation's own quotes don't count: they are like themselves."""
    quotes = rubric.quotes
    party = party_of(rubric)

    def marks(view: View) -> Floats:
        examples = [quote.text for quote in quotes if quote.conversation_id != view.conversation.id] or [rubric.text]
        turns = view.of(party)
        out = np.zeros(len(view.texts))
        if len(turns):
            out[turns] = nearest(view.vectors[turns], embedder.embed(examples))
        return out

    return marks


def nearest(turns: npt.NDArray[np.float32], examples: npt.NDArray[np.float32]) -> Floats:
    """Highest cosine of each turn [turn, width] to any example [example, width]."""
    return np.asarray((turns @ examples.T).max(axis=1), dtype=np.float64)


def party_of(rubric: Rubric) -> Party:
    """Whose turns the rubric's text is about: the party named first."""
    kind, _, rest = rubric.source.partition(":")
    if kind == "turns":
        return "assistant" if rest.startswith("assistant") else "user"
    named = re.search(r"\b(user|assistant)\b", rubric.text, re.IGNORECASE)
    if not named:
        return "both"
    return "assistant" if named.group(1).lower() == "assistant" else "user"


def quotes_from(view: View, marks: Floats, party: Party, most: int = 2) -> tuple[Quote, ...]:
    """The sentences around the strongest marks, word for word.

    A length or a share marks every turn alike; then the last turns speak for it.
    """
    turns = view.of(party)
    strongest = sorted(turns, key=lambda turn: (-round(float(marks[turn]), 6), -turn))[:most]
    return tuple(
        Quote(conversation_id=view.conversation.id, turn=int(turn), text=excerpt(view.conversation.turns[turn].content))
        for turn in sorted(strongest)
        if marks[turn] != 0
    )


LONGEST_QUOTE = 240


def excerpt(text: str) -> str:
    """A turn as it is, or its beginning up to the end of a word."""
    text = text.strip()
    if len(text) <= LONGEST_QUOTE:
        return text
    cut = text[:LONGEST_QUOTE]
    return cut[: cut.rfind(" ")] if " " in cut[LONGEST_QUOTE // 2 :] else cut
