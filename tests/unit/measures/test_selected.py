"""What is told because it is large is shrunk, and its interval keeps its promise among what is told."""

import numpy as np
import pytest

from pollex.measures.selected import (
    estimate_mean_given_passed_threshold,
    find_threshold_passed_by_p_value,
)


def test_what_barely_passed_is_shrunk_much_and_what_is_far_above_hardly() -> None:
    barely = estimate_mean_given_passed_threshold(4.3, 4.2)
    far = estimate_mean_given_passed_threshold(9.0, 4.2)

    assert barely.value < 3
    assert barely.low < 1
    assert far.value == pytest.approx(9.0, abs=0.05)
    assert (far.low, far.high) == pytest.approx((7.04, 10.96), abs=0.05)


@pytest.mark.parametrize("mean", [1.5, 3.0, 4.0, 6.0])
def test_intervals_hold_among_what_passed(mean: float) -> None:
    rng = np.random.default_rng(3)
    told = [z for z in rng.normal(mean, 1.0, 60_000) if z >= 3.5][:1500]
    found = [estimate_mean_given_passed_threshold(z, 3.5) for z in told]

    assert np.mean([one.low <= mean <= one.high for one in found]) >= 0.93
    assert np.mean([one.value for one in found]) < np.mean(told)


def test_the_threshold_is_where_the_adjusted_p_would_just_have_passed() -> None:
    assert find_threshold_passed_by_p_value(4.0, 0.05, 0.05) == pytest.approx(4.0)
    assert find_threshold_passed_by_p_value(6.0, 1e-4, 0.05) < 5.0
    assert find_threshold_passed_by_p_value(1.0, 0.01, 0.05) <= 1.0
