"""The scale on which the embedded judge answers: from four measures of a rubric's evidence to the Likert options.

The odds of the answer are those of a Gaussian naive Bayes with equal weights:

    e = Σ_v w_v · (x_v − m_v) / s_v        w_v = max(0, δ_v), halved; for DSAT rubrics with δ turned
    P(option k of 5) = Binomial(k; 4, σ(e))

x the measures (`signal.MEASURES`), δ_v the difference of the two classes' means in standard deviations s_v, m_v the
point half way between them. Evidence that doesn't separate the classes stays near Neutral, evidence that does moves the
answer as far as it tells; a measure that goes against the rubric's polarity is not heard at all. The weights are so
plain on purpose: with 50 conversations a class, fitted ones are noise (in trials ridge regression on the same measures
did no better, and lasted worse). `lean` adds prior evidence: `PRIOR_CONVERSATIONS` in which the classes differ by
`PRIOR_DIFFERENCE` standard deviations in its direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.signals.signal import MEASURES
from pollex.agents.embedded.view import Floats

PRIOR_CONVERSATIONS = 40
PRIOR_DIFFERENCE = 0.3
GAIN = 0.5
FARTHEST = 2.5  # standard deviations from the middle beyond which a measure says no more

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scale:
    """What was learnt about one rubric: middle, spread and weight of each measure, [measure]."""

    middle: Floats
    spread: Floats
    weight: Floats

    def odds(self, measures: Floats) -> Floats:
        """Log-odds e of measures [..., measure]."""
        z = np.clip((measures - self.middle) / self.spread, -FARTHEST, FARTHEST)
        return np.asarray(GAIN * (z @ self.weight))

    def to_json(self) -> dict[str, list[float]]:
        return {name: getattr(self, name).tolist() for name in ("middle", "spread", "weight")}

    @classmethod
    def from_json(cls, stored: Any) -> Scale:
        """The scale that `to_json` gave.

        Raises:
            ValueError: It has another form; answers on it would be none.
        """
        try:
            found = cls(*(np.array(stored[name], dtype=np.float64) for name in ("middle", "spread", "weight")))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError("middle, spread and weight are not lists of numbers") from None
        columns = (found.middle, found.spread, found.weight)
        if any(column.shape != (len(MEASURES),) or not np.isfinite(column).all() for column in columns):
            raise ValueError(f"middle, spread and weight are not {len(MEASURES)} numbers each")
        if not (found.spread > 0).all():
            raise ValueError("a spread is not above 0")
        return found


def rounded(values: Floats) -> Floats:
    """Six significant digits: a person reads these, and a scale that was stored is the one that was learnt."""
    return np.array([float(f"{value:.6g}") for value in values])


# For a rubric that was never studied: cosines of unrelated turns lie around 0.1 to 0.3.
UNSTUDIED = Scale(np.array([0.2, 1.0, 0.35, 0.0]), np.array([0.15, 0.5, 0.2, 0.2]), np.array([0.5, 0.0, 1.0, 0.25]))


def learn_scale(measures: Floats, positive: Flags, direction: int, lean: int = 0) -> Scale:
    """The scale of one rubric from labelled conversations.

    Args:
        measures: [conversation, measure].
        positive: [conversation].
        direction: +1 where strong evidence should speak for a good conversation (SAT), −1 for a bad one (DSAT).
        lean: What is known of the evidence in general, +1, −1 or 0.
    """
    differences, middle, spread = separation(measures, positive, lean)
    return Scale(rounded(middle), rounded(spread), rounded(np.maximum(0.0, direction * differences)))


def separation(measures: Floats, positive: Flags, lean: int = 0) -> tuple[Floats, Floats, Floats]:
    """δ, the middle of the classes and the spread, each [..., measure], of measures [conversation, ..., measure]."""
    spread = measures.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    high, low = measures[positive].mean(axis=0), measures[~positive].mean(axis=0)
    n = len(positive)
    seen = (high - low) / spread
    return (
        (n * seen + PRIOR_CONVERSATIONS * PRIOR_DIFFERENCE * lean) / (n + PRIOR_CONVERSATIONS),
        (high + low) / 2,
        spread,
    )


def binomial(p: float, options: int) -> tuple[float, ...]:
    """Probabilities of `options` ordered options with mean position p: the expected Likert value is exactly 10·p."""
    n = options - 1
    return tuple(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(options))


assert len(MEASURES) == len(UNSTUDIED.middle)
