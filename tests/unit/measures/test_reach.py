"""How much is recovered, how alike rubrics are, and what more labels are worth."""

import numpy as np
import pytest

from pollex.measures.classification import (
    compute_auc,
    estimate_share_of_plain_auc_gain_reached,
    measure_auc_by_label_count,
)
from pollex.measures.correlations import estimate_mean_correlation_of_rubrics

N = 200
UP = np.arange(N) % 2 == 0
ALONE = np.arange(N)


def scores(shift: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=N) + shift * UP


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_what_is_recovered_is_the_gain_over_guessing_beside_methods_that_don_t_guess() -> None:
    ours = scores(0.5)
    plain = scores(1.5, seed=1)
    found = estimate_share_of_plain_auc_gain_reached(ours, plain, UP, ALONE, rng())
    assert (found.value, found.n) == (
        pytest.approx((compute_auc(ours, UP) - 0.5) / (compute_auc(plain, UP) - 0.5)),
        N,
    )
    assert found.low < found.value < found.high < 1  # type: ignore[operator]
    assert (
        "not surely better than guessing"
        in estimate_share_of_plain_auc_gain_reached(
            ours, scores(0.0, seed=2), UP, ALONE, rng()
        ).undefined
    )
    assert (
        "only one class"
        in estimate_share_of_plain_auc_gain_reached(ours, ours, UP | True, ALONE, rng()).undefined
    )


def test_the_mean_correlation_is_numpys_and_a_constant_rubric_correlates_with_nothing() -> None:
    values = np.random.default_rng(0).normal(size=(N, 3))
    values[:, 1] += values[:, 0]
    known = np.corrcoef(values.T)[np.triu_indices(3, 1)]
    assert estimate_mean_correlation_of_rubrics(values, ALONE, rng()).value == pytest.approx(
        known.mean()
    )
    values[:, 2] = 4.0
    assert estimate_mean_correlation_of_rubrics(values, ALONE, rng()).value == pytest.approx(
        known[0] / 3
    )
    assert estimate_mean_correlation_of_rubrics(values[:, :1], ALONE, rng()).undefined


def test_more_labels_are_worth_what_the_logarithm_of_their_number_foretells() -> None:
    by_size = {50: [scores(0.4), scores(0.6)], 100: [scores(0.8)], 200: [scores(1.2)]}
    points, more = measure_auc_by_label_count(by_size, UP, ALONE, rng(), more=20)
    reached = [np.mean([compute_auc(one, UP) for one in draws]) for draws in by_size.values()]
    assert [point.value for point in points.values()] == pytest.approx(reached)
    slope = np.polyfit(np.log([50, 100, 200]), reached, 1)[0]
    assert more.value == pytest.approx(slope * np.log(220 / 200))
    assert more.low > 0  # type: ignore[operator]
