"""The threshold between bad and good scores, and the window of uncertain ones.

Source: Biyani et al. 2024, on θ and on YieldRate.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import require_both_classes

PRECISION = 0.9
"""P of YieldRate@P: how often a score outside the window has to be right."""


@dataclass(frozen=True)
class Window:
    """The uncertainty window: scores over `lower` and at or under `upper`.

    Attributes:
        lower: At or under it, Prec− ≥ `precision` on the training scores. None: no threshold up to θ reaches that, and
            no score is confidently negative.
        upper: Over it, Prec+ ≥ `precision`. None: no score is confidently positive.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    lower: float | None
    upper: float | None
    precision: float = PRECISION

    def confident(self, scores: Floats) -> Bools:
        """Return a mask of the scores outside the window `[conversation]`."""
        return self.under(scores) | self.over(scores)

    def under(self, scores: Floats) -> Bools:
        """Say which scores are confidently negative: `[conversation]` to `[conversation]`."""
        scores = np.asarray(scores, float)
        return np.zeros(scores.shape, bool) if self.lower is None else scores <= self.lower

    def over(self, scores: Floats) -> Bools:
        """Say which scores are confidently positive: `[conversation]` to `[conversation]`."""
        scores = np.asarray(scores, float)
        return np.zeros(scores.shape, bool) if self.upper is None else scores > self.upper


def fit_window(scores: Floats, positive: Bools, theta: float, precision: float = PRECISION) -> Window:
    """Find the narrowest window with both precisions on training scores.

    Precision curves go up and down. `lower` is the highest threshold up to θ with Prec− ≥ P, whatever happens below
    it: the promise is about all scores at or under it together. `upper` is the lowest from θ on with Prec+ ≥ P. Each
    is bound to its side of θ: a confident score never contradicts its label, and lower ≤ upper; both are θ when θ
    itself keeps both promises. Thresholds tried are θ and half way between neighboring scores, so that rounding
    moves no score across one.

    Args:
        scores: NetSAT of the training conversations `[conversation]`.
        positive: Their labels `[conversation]`.
        theta: The label threshold, θ_c.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    levels = np.unique(np.round(scores, 9))
    thresholds = np.sort(np.append((levels[:-1] + levels[1:]) / 2, theta))
    up, down = (np.searchsorted(np.sort(scores[side]), thresholds, side="right") for side in (positive, ~positive))
    over, over_up = len(scores) - up - down, positive.sum() - up
    lower = thresholds[(thresholds <= theta) & (up + down > 0) & (down >= precision * (up + down))]
    upper = thresholds[(thresholds >= theta) & (over > 0) & (over_up >= precision * over)]
    return Window(
        lower=float(lower[-1]) if len(lower) else None,
        upper=float(upper[0]) if len(upper) else None,
        precision=precision,
    )
