"""What distributions of answers come to: their entropy, their variance, and the expected answers of several judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pollex.calibration.questionnaire import Floats
from pollex.errors import WrongUse

Aggregate = Literal["mean", "max"] | float
"""How the expected answers of several judges become one: their mean, the largest, or a quantile from 0 to 1."""


def aggregated(values: Floats, aggregate: Aggregate) -> Floats:
    """Values of several judges `[row, judge]` as one `[row]`.

    Raises:
        WrongUse: Neither `mean` nor `max`, nor a quantile from 0 to 1.
    """
    if aggregate == "mean":
        return np.asarray(values.mean(axis=1))
    if aggregate == "max":
        return np.asarray(values.max(axis=1))
    if isinstance(aggregate, (int, float)) and 0 <= aggregate <= 1:
        return np.asarray(np.quantile(values, aggregate, axis=1))
    raise WrongUse(f"no way to aggregate is called {aggregate!r}", remedy="use mean, max or a quantile from 0 to 1")


def entropy(proba: Floats) -> Floats:
    """−Σ p log p in nats `[row]` of distributions `[row, option]`; 0·log 0 is 0."""
    logs = np.log(proba, out=np.zeros_like(proba), where=proba > 0)
    return np.asarray(-(proba * logs).sum(axis=-1))


def variance(proba: Floats, values: Sequence[float]) -> Floats:
    """Variance of the answer's value `[row]` under distributions `[row, option]`, in squared value units."""
    worth = np.array(values)
    mean = proba @ worth
    spread: Floats = (proba * (worth - mean[:, None]) ** 2).sum(axis=1)
    return spread
