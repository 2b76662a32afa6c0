"""Looking often raises no false alarms."""

import numpy as np
import pytest

from pollex.measures.looks import ConfidenceSequence, difference_interval


def test_the_first_bet_is_the_formula_worked_by_hand() -> None:
    found = ConfidenceSequence(alpha=0.5)
    found.add(np.array([1.0]))
    stake = np.sqrt(2 * np.log(4) / (0.25 * np.log(2)))  # 4: capped at .5/m where that is less
    assert found._above[500] == pytest.approx(np.log(1 + min(stake, 1.0) * 0.5))
    assert found._below[500] == pytest.approx(np.log(1 - min(stake, 1.0) * 0.5))


@pytest.mark.nightly
def test_looking_at_every_value_misses_the_mean_in_at_most_one_of_twenty_series() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        sequence = ConfidenceSequence()
        for _ in range(15):
            sequence.add((rng.random(20) < 0.7).astype(float))
            if not sequence.low <= 0.7 <= sequence.high:
                missed += 1
                break
    assert missed <= 5


def test_the_interval_narrows_and_never_widens() -> None:
    rng = np.random.default_rng(1)
    sequence, before = ConfidenceSequence(), 1.0
    for _ in range(10):
        sequence.add(rng.beta(6, 2, size=50))
        assert sequence.high - sequence.low <= before + 1e-12
        before = sequence.high - sequence.low
    assert before < 0.12
    assert sequence.low < 0.75 < sequence.high


def test_a_mean_that_moves_leaves_no_mean_at_all() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.random(400) < 0.9, rng.random(800) < 0.2]).astype(float)
    assert ConfidenceSequence().add(values).empty


def test_a_difference_is_bounded_on_its_own_scale() -> None:
    rng = np.random.default_rng(3)
    low, high = difference_interval(rng.normal(0.1, 0.2, size=500).clip(-1, 1))
    assert 0 < low < 0.1 < high < 0.2
