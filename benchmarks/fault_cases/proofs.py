"""Proofs of a prompt: what few users show, and files that can't be written."""

from pathlib import Path

import numpy as np
import pytest

from fault_cases import case
from pollex.errors import PollexError
from pollex.rooms.remedy.measures.proofs import FAILING_STRATUM, ProofArrays
from pollex.rooms.remedy.services.run import require_writable_places


@case("42.2.7", "a guardrail of so few users that nothing is ruled out is unknown")
def few_users(folder: Path) -> str:  # noqa: ARG001 - as every case
    """Measure guardrails of two to five users whose replies all change alike, or not at all."""
    intervals = []
    for users in range(2, 6):
        for old, new in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)):
            values = np.full((users, 2, 1, 2), old)
            values[:, 1] = new
            nobody = np.zeros(users, int)
            stratum = np.full(users, FAILING_STRATUM)
            arrays = ProofArrays(values, stratum, np.arange(users), nobody, ["target", "guardrail"])
            (guardrail,) = arrays.guardrails(0)
            assert guardrail.state == "unknown", (users, old, new, guardrail)
            intervals.append((guardrail.effect.low, guardrail.effect.high))
    assert set(intervals) == {(-1.0, 1.0)}, intervals
    return f"{len(intervals)} guardrails"


@case("42.1.12", "links and wrong files beside a proof's result are refused before the first reply")
def places_of_a_proof(folder: Path) -> str:
    """Put a link to a folder of the user's, or a wrong line, where each output or answer is to be."""
    out = folder / "o.json"
    own = folder / "own"
    own.mkdir()
    (own / "1.diff").write_text("my own")
    names = ("o-edits", "o-people", "o.html", "o-pairs.parquet")
    for name in names:
        (folder / name).symlink_to(own if "." not in name else own / "1.diff")
        with pytest.raises(PollexError, match="it is a link"):
            require_writable_places(out, people=True)
        (folder / name).unlink()

    (folder / "o-people").mkdir()
    (folder / "o-people" / "choices.jsonl").write_text("no choice\n")
    with pytest.raises(PollexError, match=r"choices\.jsonl:1"):
        require_writable_places(out, people=True)
    assert (own / "1.diff").read_text() == "my own"
    return f"{len(names)} links, 1 line"
