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
    find_worse_guardrails,
    is_drop_ruled_out,
    may_be_length_effect,
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
    assert (
        bool(may_be_length_effect(values, ratio)),
        bool(may_be_length_effect(values + 0.3, ratio - 0.4)),
    ) == (
        True,
        False,
    )


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
