"""Looking often raises no false alarms: intervals that hold at every look."""

import numpy as np
import pytest

from pollex.measures.every_look import ConfidenceSequence, bound_mean_difference_at_every_look


@pytest.mark.nightly
def test_looking_at_every_value_misses_the_mean_in_at_most_one_of_twenty_series() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        sequence = ConfidenceSequence()
        looked = (sequence.add((rng.random(20) < 0.7).astype(float)) for _ in range(15))
        missed += any(not look.low <= 0.7 <= look.high for look in looked)
    assert missed <= 5


def test_the_interval_narrows_never_widens_and_is_empty_where_the_mean_moves() -> None:
    rng = np.random.default_rng(1)
    sequence = ConfidenceSequence()
    before = 1.0
    for _ in range(10):
        sequence.add(rng.beta(6, 2, size=50))
        assert sequence.high - sequence.low <= before + 1e-12
        before = sequence.high - sequence.low
    assert before < 0.12
    assert sequence.low < 0.75 < sequence.high
    assert sequence.add((rng.random(800) < 0.2).astype(float)).empty


def test_a_difference_is_bounded_on_its_own_scale() -> None:
    rng = np.random.default_rng(3)
    low, high = bound_mean_difference_at_every_look(rng.normal(0.1, 0.2, size=500).clip(-1, 1))
    assert 0 < low < 0.1 < high < 0.2
