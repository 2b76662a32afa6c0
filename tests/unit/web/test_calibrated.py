"""Figures of the page on calibration."""

import numpy as np

from pollex.web.calibrated import outside


def test_values_beyond_all_earlier_ones_are_counted_and_missing_ones_are_not() -> None:
    before, after = np.array([-3.0, 0.0, 5.0, np.nan]), np.array([-3.0, 5.0, 5.1, -4.0, 1.0, np.nan])
    found = outside(before, after)
    assert (found.value, found.n) == (0.4, 5)
    assert found.low is not None
    assert found.low < 0.4
