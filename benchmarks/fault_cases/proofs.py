"""Proofs of a prompt: what few users show, and files that can't be written."""

from pathlib import Path

import numpy as np

from fault_cases import case
from pollex.rooms.remedy.measures.proofs import FAILING, ProofArrays


@case("42.2.7", "a guardrail of so few users that nothing is ruled out is unknown")
def few_users(folder: Path) -> str:  # noqa: ARG001 - as every case
    """Measure guardrails of two to five users whose replies all change alike, or not at all."""
    intervals = []
    for users in range(2, 6):
        for old, new in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)):
            values = np.full((users, 2, 1, 2), old)
            values[:, 1] = new
            nobody = np.zeros(users, int)
            stratum = np.full(users, FAILING)
            arrays = ProofArrays(values, stratum, np.arange(users), nobody, ["target", "guardrail"])
            (guardrail,) = arrays.guardrails(0)
            assert guardrail.state == "unknown", (users, old, new, guardrail)
            intervals.append((guardrail.effect.low, guardrail.effect.high))
    assert set(intervals) == {(-1.0, 1.0)}, intervals
    return f"{len(intervals)} guardrails"
