import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pollex.errors import BadLabels
from pollex.selection.threshold import fit_window, guaranteed_window, least_confident


def drawn(n: int, rng: np.random.Generator, chance: float = 0.895) -> tuple[np.ndarray, np.ndarray]:
    """Scores of which those over 0 are right just too seldom, and so are those under it."""
    scores = rng.normal(size=n)
    return scores, rng.random(n) < np.where(scores > 0, chance, 1 - chance)


def test_one_class_has_no_guarantee() -> None:
    with pytest.raises(BadLabels):
        guaranteed_window(np.arange(3.0), np.ones(3, bool), 1.0)


def test_too_few_labels_have_no_threshold_and_are_told_how_many_it_takes() -> None:
    # 20 conversations apart: without an error, each side needs 29 beyond its threshold, and half of all are there.
    # An error in 11, as Jeffreys counts none in 10, leaves a gap of 0.1 − 0.5/11 to prove with certainty 0.95.
    found = guaranteed_window(np.arange(20.0), np.arange(20) > 9, 9.5)
    assert found.window.lower is None
    assert found.window.upper is None
    assert (found.n, found.upper.confident, found.upper.wrong) == (20, 0, 0)
    expected = 1.6449**2 * 0.9 * 0.1 / (0.1 - 0.5 / 11) ** 2 / 0.5
    assert found.upper.needed == pytest.approx(expected, abs=1.5)
    assert found.lower.needed == found.upper.needed


def test_scores_that_are_never_right_often_enough_are_told_that_no_number_of_labels_helps() -> None:
    positive = np.arange(400) % 2 == 0
    found = guaranteed_window(np.arange(400.0), positive, 199.5)
    assert found.upper.threshold is None
    assert found.upper.needed is None
    assert found.lower.needed is None


def test_the_least_number_of_labels_is_where_an_exact_test_first_rejects() -> None:
    assert least_confident(0.9, 0.05) == 29  # 0.9^29 = 0.047, 0.9^28 = 0.052
    assert least_confident(0.9, 0.05, wrong=1) == 46
    for wrong in (0, 1, 3):
        n = least_confident(0.8, 0.02, wrong)
        p = [binomtest(wrong, size, 0.2, alternative="less").pvalue for size in (n - 1, n)]
        assert p[0] > 0.02 >= p[1]


def test_the_upper_side_of_a_hundred_conversations_worked_by_hand() -> None:
    # Over θ = 99.5 are 100, and the lowest 20 of them are negative. Going inwards, 80 are right, and then one after
    # another is wrong, until the test at δ/2 = 0.05 rejects no more. Under θ all are right.
    scores = np.arange(200.0)
    positive = scores >= 120
    found = guaranteed_window(scores, positive, 99.5)
    p = {wrong: binomtest(wrong, 80 + wrong, 0.1, alternative="less").pvalue for wrong in range(8)}
    wrong = max(wrong for wrong in p if all(p[fewer] <= 0.05 for fewer in range(wrong + 1)))
    assert (found.upper.confident, found.upper.wrong) == (80 + wrong, wrong)
    assert found.upper.threshold == 119.5 - wrong
    assert (found.lower.confident, found.lower.wrong, found.lower.threshold) == (100, 0, 99.5)


def test_a_threshold_behind_one_that_failed_is_not_taken_even_where_its_own_test_passes() -> None:
    # The 50 highest have 6 wrong, and fail; with the 150 after them, all right, 6 of 200 would pass.
    scores = np.arange(400.0)
    positive = scores >= 200
    positive[350:400:9] = False
    assert binomtest(6, 200, 0.1, alternative="less").pvalue < 0.01
    assert guaranteed_window(scores, positive, 199.5).upper.threshold is None


@given(st.integers(0, 10_000), st.sampled_from([60, 200, 400]))
def test_the_sides_mirror_each_other_and_stay_on_theirs(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    positive = rng.random(n) < 1 / (1 + np.exp(-5 * scores))
    found, mirrored = guaranteed_window(scores, positive, 0.1), guaranteed_window(-scores, ~positive, -0.1)
    assert (found.upper.confident, found.upper.wrong) == (mirrored.lower.confident, mirrored.lower.wrong)
    for one, other in ((found.upper, mirrored.lower), (found.lower, mirrored.upper)):
        assert one.threshold == (None if other.threshold is None else pytest.approx(-other.threshold))
    assert found.upper.threshold is None or found.upper.threshold >= 0.1
    assert found.lower.threshold is None or found.lower.threshold <= 0.1
    for side in (found.upper, found.lower):
        assert (side.threshold is None) == (side.confident == 0)


def test_the_guarantee_is_kept_where_the_plug_in_window_fails_most_of_the_time() -> None:
    # Every threshold is right 89.5 % of the time: to name one at all is to fail. The guarantee allows 20 of 200 splits,
    # with a standard error of 4.2.
    rng = np.random.default_rng(0)
    failures = {"plug-in": 0, "guaranteed": 0}
    for _ in range(200):
        scores, positive = drawn(400, rng)
        plug_in, ours = fit_window(scores, positive, 0.0), guaranteed_window(scores, positive, 0.0).window
        failures["plug-in"] += (plug_in.lower, plug_in.upper) != (None, None)
        failures["guaranteed"] += (ours.lower, ours.upper) != (None, None)
    assert failures["guaranteed"] <= 34
    assert failures["plug-in"] >= 190


def test_more_certainty_never_widens_what_is_confident() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=600)
    positive = rng.random(600) < 1 / (1 + np.exp(-6 * scores))
    counts = [guaranteed_window(scores, positive, 0.0, delta=delta).upper.confident for delta in (0.3, 0.1, 0.02)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0
