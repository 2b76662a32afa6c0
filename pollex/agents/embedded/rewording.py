"""What a rubric that a person has re-worded rests on from now on."""

from __future__ import annotations

import re

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import SIGNALS
from pollex.agents.rubrics import Rubric

NEAR = 0.8
"""Cosine from which on a new wording says the same thing."""

_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)


def reworded(rubric: Rubric, written: str, embedder: Embedder) -> Rubric:
    """The rubric with the evidence that its text now asks for; itself where that hasn't changed.

    A wording near the written one keeps its source, unless the sentence of another signal is nearer: then the rubric
    rests on that signal (“answers at length” became “answers briefly”). Any other wording is a person's own: its turns
    are found by its text, no longer by the old quotes. Its reasons stay, so that one still sees where it came from.

    Args:
        written: The text that the rubric had when θ was fitted; empty for a rubric that a person added.
    """
    if not written or " ".join(rubric.text.split()) == " ".join(written.split()):
        return rubric
    source = nearest_source(rubric, written, embedder)
    return rubric if source == rubric.source else rubric.model_copy(update={"source": source, "quotes": ()})


def nearest_source(rubric: Rubric, written: str, embedder: Embedder) -> str:
    """The source whose sentence is nearest to the rubric's text; `person` where none is near.

    Embeddings hardly see a “not”: a sentence that is denied in one of the two texts only is not near.
    """
    signals = {signal.statement: f"signal:{signal.name}" for signal in SIGNALS.values()}
    sentences = {written: rubric.source} | {text: source for text, source in signals.items() if text != written}
    alike = [sentence for sentence in sentences if negated(sentence) == negated(rubric.text)]
    cosines = embedder.embed(alike) @ embedder.embed([rubric.text])[0] if alike else []
    near = [(cosine, sentence) for cosine, sentence in zip(cosines, alike, strict=True) if cosine >= NEAR]
    # Of equals the first, the written text, is taken.
    return sentences[max(near, key=lambda pair: pair[0])[1]] if near else "person"


def negated(text: str) -> bool:
    """Whether a sentence denies something, twice denied being not denied."""
    return len(_NEGATION.findall(text)) % 2 == 1
