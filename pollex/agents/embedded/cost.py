"""What it costs to score a conversation with a rubric set, estimated by what its rubrics read."""

from __future__ import annotations

from collections.abc import Sequence

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import evidence_of
from pollex.rubrics.rubric import DISTILLED, Rubric

TURNS = 25
"""Turns of the conversation that costs are told for."""

BASE, EACH, EVENTS, WORDS, VECTORS = 1.2, 0.03, 1.0, 0.2, 100.0
"""Milliseconds of CPU: of any conversation (reading, writing, keeping), and of it for each rubric, for events, for each
rubric that compares words, and for vectors of all turns. Measured by `benchmarks/scoring.py` on a slow core."""


def cost_of(rubrics: Sequence[Rubric]) -> str:
    """Say about what a conversation of 25 turns costs, and whether turns are embedded."""
    own = [rubric for rubric in rubrics if rubric.answered_by != DISTILLED]
    kinds = [rubric.source.partition(":")[0] for rubric in own]
    vectors = any(evidence_of(rubric, Embedder()).vectors for rubric in own)
    ms = BASE + EACH * len(rubrics) + WORDS * kinds.count("turns") + VECTORS * vectors
    ms += EVENTS * any(kind in ("event", "rate") for kind in kinds)
    embedded = "its turns embedded" if vectors else "no embedding"
    return f"about {ms:.0f} ms of CPU a conversation of {TURNS} turns, {embedded}"
