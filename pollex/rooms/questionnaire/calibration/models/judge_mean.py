"""Each judge's own shares of answers, without a look at the text."""

from typing import ClassVar

import numpy as np

from pollex.calibration.models.constant import Constant
from pollex.measures.arrays import Floats


class JudgeMean(Constant):
    """A judge's shares of answers to each question; an unknown judge has everybody's.

    Args:
        strength: Weight of everybody's shares, in judgments of each judge.
        smoothing: Number of prior judgments in everybody's shares, spread evenly over the options.
    """

    title: ClassVar[str] = "judge's mean"

    def __init__(self, strength: float = 8.0, smoothing: float = 1.0) -> None:
        self.strength = strength
        self.smoothing = smoothing

    def _shrink(self, counts: Floats, towards: Floats) -> Floats:
        """Shrink each judge's shares `[judge + 1, option]` to everybody's."""
        # everybody's shares count as `strength` judgments
        pulled = counts + self.strength * towards
        total = pulled.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(
            pulled,
            total,
            out=np.broadcast_to(towards, pulled.shape).copy(),
            where=total > 0,
        )
        return shares
