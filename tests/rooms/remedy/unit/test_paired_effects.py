"""Effects over users: by hand, against libraries, and with few users."""

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp
from sklearn.metrics import cohen_kappa_score

from pollex.measures.correlations import estimate_weighted_kappa
from pollex.rooms.remedy.measures.proofs import (
    average_by_user,
    compute_flipped_p,
    compute_smallest_detectable_effect,
    compute_upper_bound,
    compute_upper_bound_of_difference,
    compute_z,
    draw_sign_flips,
    estimate_effect,
    estimate_effect_at_equal_length,
    find_length_doubt,
    find_worse_guardrails,
    is_drop_ruled_out,
)

RNG = np.random.default_rng(0)


def test_a_users_contexts_count_once_and_missing_ones_are_left_out() -> None:
    found = average_by_user(np.array([1.0, 3.0, np.nan, 5.0]), np.array([7, 7, 7, 2]))
    assert found.tolist() == [5.0, 2.0]


def test_the_interval_is_students_and_the_deviate_has_its_p_also_of_many_guardrails_at_once() -> (
    None
):
    values = RNG.normal(0.1, 0.3, 40)
    found = estimate_effect(values, n=60)
    theirs = ttest_1samp(values, 0)
    assert (found.low, found.high) == pytest.approx(
        tuple(theirs.confidence_interval(0.95)), abs=1e-4
    )
    assert theirs.pvalue == pytest.approx(2 * norm.sf(abs(found.z)), abs=1e-9)
    assert (found.n, found.users) == (60, 40)
    many = RNG.normal(0, 1, (3, 4, 30))
    assert compute_z(many)[1, 2] == pytest.approx(float(compute_z(many[1, 2])))


def test_signs_of_three_users_by_hand_and_with_four_nothing_is_ruled_out() -> None:
    """Of the eight sums of ±1 ±2 ±3 two are 6 or more in size: p = 2/8."""
    assert compute_flipped_p(np.array([1.0, 2.0, 3.0]), draw_sign_flips(3, RNG)) == 0.25
    found = estimate_effect(np.array([0.1, 0.2, 0.3, 0.4]))
    assert (found.low, found.high) == (-1.0, 1.0)


def test_few_users_by_flips_hold_the_truth_as_often_as_said() -> None:
    rng = np.random.default_rng(1)
    held = [
        (found := estimate_effect(rng.normal(0.2, 0.3, 10))).low <= 0.2 <= found.high
        for _ in range(150)
    ]
    assert 0.91 <= np.mean(held) <= 0.99


def test_benjamini_and_hochberg_by_hand() -> None:
    """Steps .025, .05, .075, .1: the third is under its own, so the first three are called."""
    assert find_worse_guardrails(np.array([[0.03, 0.9, 0.001, 0.07]])).tolist() == [
        [True, False, True, True]
    ]


def test_a_guardrail_without_change_is_cleared_by_many_users_and_open_with_few() -> None:
    values = np.tile([0.3, -0.3], 100)
    assert (bool(is_drop_ruled_out(values)), bool(is_drop_ruled_out(values[:10]))) == (True, False)
    assert compute_smallest_detectable_effect(0.3, 320) == pytest.approx(
        compute_smallest_detectable_effect(0.3, 80) / 2
    )


def test_bounds_of_room_lie_above_the_mean() -> None:
    fine = RNG.normal(0.8, 0.1, 60)
    fails = RNG.normal(0.3, 0.1, 60)
    assert (
        compute_upper_bound_of_difference(fine, fails)
        > 0.5
        > compute_upper_bound_of_difference(fails, fails)
    )
    assert compute_upper_bound(fine) > fine.mean()


def test_the_effect_at_equal_length_is_the_intercept() -> None:
    ratio = RNG.normal(0.4, 0.3, 80)
    values = 0.2 * ratio + RNG.normal(0, 0.1, 80)
    assert float(estimate_effect_at_equal_length(values, ratio)[0]) == pytest.approx(
        np.polyfit(ratio, values, 1)[1], abs=1e-9
    )


@pytest.mark.parametrize(
    ("ratio", "difference", "doubt"),
    [
        pytest.param([0.58] * 12, [0.5] * 12, "longer", id="all longer by 79 %, and all gain"),
        pytest.param([-0.58] * 12, [0.5] * 12, "shorter", id="all shorter by 44 %"),
        pytest.param([-0.2] + [0.4] * 11, [0.0] + [1.0] * 11, "longer", id="one of twelve shorter"),
        pytest.param([-0.2] * 2 + [0.4] * 28, [0.0] * 2 + [1.0] * 28, "longer", id="under a tenth"),
        pytest.param([-0.2, 0.2] * 6, [0.5] * 12, "none", id="overlap, and equal length keeps it"),
        pytest.param([0.04] * 12, [0.5] * 12, "none", id="within 5 % all are of equal length"),
        pytest.param(
            [-0.2, 0.0, 0.2, 0.4, 0.6, 0.8] * 2,
            [-0.2, 0.0, 0.2, 0.4, 0.6, 0.8] * 2,
            "likely",
            id="the gain is the length: a line through zero, mean 0.3",
        ),
        pytest.param(
            [-0.1, -0.1, 0.3, 0.3],
            [1.0, -1.0, 1.0, 1.0],
            "open",
            id="intercept 0.25, error √(2/2 · (1/4 + 0.01/0.16)) = 0.56: nothing is certain",
        ),
        pytest.param([0.58] * 2, [0.5] * 2, "none", id="too few users for any line"),
    ],
)
def test_a_gain_is_laid_to_length_only_where_lengths_overlap_and_else_it_is_said(
    ratio: list[float], difference: list[float], doubt: str
) -> None:
    assert find_length_doubt(np.array(difference), np.array(ratio)) == doubt


def test_a_gain_that_is_certain_at_equal_length_is_none_of_length_alone() -> None:
    """Of a gain of 0.6, 0.2 is left at equal length, exactly: less than half, and above zero."""
    ratio = np.array([-0.2, 0.0, 0.4, 0.6, 0.8, 0.8])
    assert find_length_doubt(0.2 + ratio, ratio) == "open"


def test_weighted_kappa_is_that_of_scikit_learn_and_there_is_none_of_answers_that_are_all_alike() -> (
    None
):
    one, other = RNG.integers(0, 5, (2, 200))
    other = np.where(RNG.random(200) < 0.6, one, other)
    found = estimate_weighted_kappa(
        one.astype(float), other.astype(float), np.arange(200), np.random.default_rng(1)
    )
    assert found.value == pytest.approx(
        cohen_kappa_score(one, other, weights="quadratic"), abs=1e-9
    )
    assert found.low < found.value  # type: ignore[operator]
    assert estimate_weighted_kappa(np.ones(10), np.ones(10), np.arange(10)).value is None
