import json
from dataclasses import asdict

import numpy as np
import pytest
from plain_loops import plain_terms

from pollex.errors import BadLabels
from pollex.selection.losses import precision_plot


def test_one_class_has_no_curves() -> None:
    with pytest.raises(BadLabels):
        precision_plot(np.arange(3.0), np.ones(3, bool))


def test_the_plot_of_four_conversations_worked_by_hand() -> None:
    # Positives score 4 and 2, negatives 0 and 2; the curves are those worked out in the test of the losses.
    plot = precision_plot(np.array([0.0, 4, 2, 2]), np.array([False, True, True, False]), grid=3)
    assert plot.thresholds == (0, 2, 4)
    assert plot.plus == pytest.approx((2 / 3, 1, 1))
    assert plot.minus == pytest.approx((1, 2 / 3, 1 / 2))
    assert plot.positives_over == (2, 1, 0)
    assert plot.negatives_over == (1, 0, 0)
    assert (plot.theta, plot.base_rate, plot.positives, plot.negatives) == (2, 0.5, 2, 2)
    assert plot.spread == pytest.approx(np.sqrt(2))
    assert plot.sharpness == pytest.approx(plain_terms([0, 4, 2, 2], [False, True, True, False], 3)[1], abs=1e-12)


def test_a_plot_is_plain_numbers_that_json_takes() -> None:
    plot = precision_plot(np.arange(5.0), np.array([False, True, False, True, True]))
    assert len(json.loads(json.dumps(asdict(plot)))["plus"]) == 101
