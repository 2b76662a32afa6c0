"""Answer frequencies smoothed by prior counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pollex.measures.arrays import Floats, Ints


def shares_of(answers: Ints, before: Floats, strength: float) -> Floats:
    """Compute shares of answers `[option]`, smoothed by `strength` prior judgments."""
    counts = np.bincount(answers, minlength=len(before)) + strength * before
    return np.asarray(counts / counts.sum())


def counts_of(judges: Ints, answers: Ints, people: int, options: int) -> Floats:
    """Count each judge's answers `[judge + 1, option]`; the last row is all 0."""
    counts = np.zeros((people + 1, options))
    known = judges >= 0
    np.add.at(counts, (judges[known], answers[known]), 1)
    return counts


def table_of(name: str, arrays: Mapping[int, Floats]) -> dict[str, Any]:
    """Name arrays by question as `name.question`, for a state."""
    return {f"{name}.{question}": array for question, array in arrays.items()}


def learned_places(name: str, arrays: Mapping[str, Any]) -> dict[int, Any]:
    """Return arrays by question, as `table_of` named them."""
    own = [key for key in arrays if key.startswith(f"{name}.")]
    return {int(key.removeprefix(f"{name}.")): arrays[key] for key in sorted(own)}
