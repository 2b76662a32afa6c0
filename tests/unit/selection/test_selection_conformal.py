import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pollex.selection.threshold import fit_window, guaranteed_window, least_confident


def less(wrong: int, n: int, rate: float = 0.1) -> float:
    return float(binomtest(wrong, n, rate, alternative="less").pvalue)


def test_too_few_labels_have_no_threshold_and_are_told_how_many_it_takes_if_any_number_helps() -> None:
    # 20 conversations apart: without an error, each side needs 29 beyond its threshold, and half of all are there.
    # An error in 11, as Jeffreys counts none in 10, leaves a gap of 0.1 − 0.5/11 to prove with certainty 0.95.
    found = guaranteed_window(np.arange(20.0), np.arange(20) > 9, 9.5)
    assert (found.window.lower, found.window.upper) == (None, None)
    assert (found.n, found.upper.confident, found.upper.wrong) == (20, 0, 0)
    expected = 1.6449**2 * 0.9 * 0.1 / (0.1 - 0.5 / 11) ** 2 / 0.5
    assert found.lower.needed == found.upper.needed == pytest.approx(expected, abs=1.5)
    never = guaranteed_window(np.arange(400.0), np.arange(400) % 2 == 0, 199.5)
    assert (never.upper.threshold, never.upper.needed, never.lower.needed) == (None, None, None)


def test_the_least_number_of_labels_is_where_an_exact_test_first_rejects() -> None:
    assert least_confident(0.9, 0.05) == 29  # 0.9^29 = 0.047, 0.9^28 = 0.052
    assert least_confident(0.9, 0.05, wrong=1) == 46
    for wrong in (0, 1, 3):
        n = least_confident(0.8, 0.02, wrong)
        assert less(wrong, n - 1, 0.2) > 0.02 >= less(wrong, n, 0.2)


def test_the_upper_side_of_a_hundred_conversations_worked_by_hand() -> None:
    # Over θ = 99.5 are 100, and the lowest 20 of them are negative. Going inwards, 80 are right, and then one after
    # another is wrong, until the test at δ/2 = 0.05 rejects no more. Under θ all are right.
    scores = np.arange(200.0)
    found = guaranteed_window(scores, scores >= 120, 99.5)
    wrong = next(number for number in range(9) if less(number + 1, 81 + number) > 0.05)
    assert (found.upper.confident, found.upper.wrong) == (80 + wrong, wrong)
    assert found.upper.threshold == 119.5 - wrong
    assert (found.lower.confident, found.lower.wrong, found.lower.threshold) == (100, 0, 99.5)


def test_a_threshold_behind_one_that_failed_is_not_taken_even_where_its_own_test_passes() -> None:
    # The 50 highest have 6 wrong, and fail; with the 150 after them, all right, 6 of 200 would pass.
    scores = np.arange(400.0)
    positive = scores >= 200
    positive[350:400:9] = False
    assert less(6, 200) < 0.01
    assert guaranteed_window(scores, positive, 199.5).upper.threshold is None


@given(st.integers(0, 10_000), st.sampled_from([60, 200, 400]))
def test_the_sides_mirror_each_other_and_stay_on_theirs(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    positive = rng.random(n) < 1 / (1 + np.exp(-5 * scores))
    found, mirrored = guaranteed_window(scores, positive, 0.1), guaranteed_window(-scores, ~positive, -0.1)
    for one, other in ((found.upper, mirrored.lower), (found.lower, mirrored.upper)):
        assert (one.confident, one.wrong) == (other.confident, other.wrong)
        assert one.threshold == (None if other.threshold is None else pytest.approx(-other.threshold))
        assert (one.threshold is None) == (one.confident == 0)
    assert found.upper.threshold is None or found.upper.threshold >= 0.1
    assert found.lower.threshold is None or found.lower.threshold <= 0.1


def test_the_guarantee_is_kept_where_the_plug_in_window_fails_most_of_the_time() -> None:
    # Every threshold is right 89.5 % of the time: to name one at all is to fail. The guarantee allows 20 of 200 splits,
    # with a standard error of 4.2.
    rng = np.random.default_rng(0)
    failures = np.zeros(2, int)
    for _ in range(200):
        scores = rng.normal(size=400)
        positive = rng.random(400) < np.where(scores > 0, 0.895, 0.105)
        windows = fit_window(scores, positive, 0.0), guaranteed_window(scores, positive, 0.0).window
        failures += [(window.lower, window.upper) != (None, None) for window in windows]
    assert failures[0] >= 190
    assert failures[1] <= 34
