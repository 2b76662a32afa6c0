"""Weights of a set and its starter."""

import numpy as np
import pytest

from pollex.rubrics.starter import Stack, scale_of, weigh, z_of


def test_few_labels_leave_the_weights_where_they_began_and_many_move_them() -> None:
    rng = np.random.default_rng(0)
    good = rng.random(2000) < 0.5
    own, noise = good + rng.normal(size=2000), rng.normal(size=2000)
    (few, _), (many, _) = (weigh(z_of(own, scale_of(own))[:n], noise[:n], good[:n]) for n in (10, 2000))
    assert few == pytest.approx((0.7, 0.7), abs=0.25)
    assert many[0] > 0.85
    assert many[1] < 0.15


def test_the_intercept_is_free_and_gives_the_share() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=500), rng.random(500) < 0.9
    weights, intercept = weigh(np.zeros(500), x, y)
    stack = Stack(own=(0, 1), starter=(0, 1), weights=weights, intercept=intercept)
    assert stack.probability(np.zeros(500), x).mean() == pytest.approx(y.mean(), abs=1e-6)


def test_a_netsat_without_spread_divides_by_nothing() -> None:
    assert z_of(np.ones(3), scale_of(np.ones(3))).tolist() == [0, 0, 0]
