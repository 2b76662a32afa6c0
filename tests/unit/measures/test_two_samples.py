"""Differences between two samples hold what they promise."""

import numpy as np
import pytest

from pollex.measures.share import conversations_for_difference, mean_differences, moved


def test_intervals_of_a_difference_cover_it_also_where_users_have_several_conversations() -> None:
    rng, hits, runs = np.random.default_rng(0), 0, 150
    for _ in range(runs):
        user = np.repeat(np.arange(60), 3)
        second = user >= 30
        values = rng.normal(size=60)[user] + 0.3 * rng.normal(size=180) + 0.5 * second
        one = mean_differences({"x": values}, second, user, rng)["x"]
        assert one.low is not None
        assert one.high is not None
        hits += one.low <= 0.5 <= one.high
    assert 0.90 <= hits / runs <= 0.99


def test_pairs_are_told_apart_better_than_strangers() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=100)
    values, second = np.append(base, base + 0.1 + 0.05 * rng.normal(size=100)), np.repeat([False, True], 100)
    paired = mean_differences({"x": values}, second, np.tile(np.arange(100), 2), rng)["x"]
    alone = mean_differences({"x": values}, second, np.arange(200), rng)["x"]
    assert paired.low is not None
    assert paired.low > 0
    assert alone.low is not None
    assert alone.low < 0


def test_of_many_values_without_a_difference_few_move() -> None:
    rng = np.random.default_rng(2)
    second = np.repeat([False, True], 80)
    found = {str(n): rng.normal(size=160) for n in range(40)} | {"real": rng.normal(size=160) + second}
    names = moved(mean_differences(found, second, np.arange(160), rng))
    assert "real" in names
    assert len(names) <= 3


def test_the_plan_for_a_difference_finds_it_four_times_of_five() -> None:
    n, rng = conversations_for_difference(0.5, 1.0), np.random.default_rng(3)
    assert n == pytest.approx(63, abs=1)
    found = 0
    for _ in range(400):
        a, b = rng.normal(size=n), rng.normal(size=n) + 0.5
        found += abs(b.mean() - a.mean()) > 1.96 * np.sqrt((a.var() + b.var()) / n)
    assert 0.73 < found / 400 < 0.87
