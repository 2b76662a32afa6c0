"""The judge's answer to the main question alone, calibrated."""

from collections.abc import Sequence
from typing import ClassVar

from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.rooms.questionnaire.calibration.models.as_is import find_own_block


class MainAlone(OrdinalMixedEffects):
    """Cumulative link on the judge's answer to the main question, for all judges: what others add is seen beside it.

    Args:
        shared: Precision of the prior on its slope.
        cuts: Of that on the cuts.
        intercepts: Of that on judges' intercepts; None, as in the paper's "calibrated Q0": none.
    """

    title: ClassVar[str] = "main question alone"

    def __init__(
        self,
        shared: float = 1.0,
        cuts: float = 0.1,
        intercepts: float | None = None,
    ) -> None:
        super().__init__(
            shared=shared,
            cuts=cuts,
            intercepts=intercepts,
            scales=None,
            slopes=None,
        )

    def _only(self) -> Sequence[str]:
        find_own_block(self, self.questionnaire_.index())
        return (self.questionnaire_.main,)
