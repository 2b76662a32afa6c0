"""Groups of texts that are none."""

import numpy as np
import pytest

from pollex.calibration.models.baselines import Constant
from pollex.errors import WrongUse


def test_groups_that_are_not_one_a_row_are_refused() -> None:
    X = np.full((2, 3), 0.2)
    with pytest.raises(WrongUse, match="3 groups for 2 rows"):
        Constant().fit(X, [2, 0], groups=["a", "b", "c"])
