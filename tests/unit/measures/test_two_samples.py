"""Differences between two samples, and drift, hold what they promise."""

import numpy as np
import pytest

from pollex.measures.drift import (
    compute_expected_log_loss,
    compute_population_stability_index,
    is_drift_significant,
    measure_stability_of_two_samples,
)
from pollex.measures.share import (
    count_conversations_for_difference,
    estimate_mean_differences,
    list_names_of_significant_differences,
)


def test_intervals_of_a_difference_cover_it_also_where_users_have_several_conversations() -> None:
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(150):
        user = np.repeat(np.arange(60), 3)
        values = rng.normal(size=60)[user] + 0.3 * rng.normal(size=180) + 0.5 * (user >= 30)
        one = estimate_mean_differences({"x": values}, user >= 30, user, rng)["x"]
        hits.append(one.low <= 0.5 <= one.high)  # type: ignore[operator]
    assert 0.90 <= np.mean(hits) <= 0.99


def test_pairs_are_told_apart_better_than_strangers() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=100)
    values = np.append(base, base + 0.1 + 0.05 * rng.normal(size=100))
    second = np.repeat([False, True], 100)
    paired, alone = (
        estimate_mean_differences({"x": values}, second, unit, rng)["x"]
        for unit in (np.tile(np.arange(100), 2), np.arange(200))
    )
    assert alone.low < 0 < paired.low  # type: ignore[operator]


def test_of_many_values_without_a_difference_few_move() -> None:
    rng = np.random.default_rng(2)
    second = np.repeat([False, True], 80)
    found = {str(n): rng.normal(size=160) for n in range(40)} | {
        "real": rng.normal(size=160) + second
    }
    names = list_names_of_significant_differences(
        estimate_mean_differences(found, second, np.arange(160), rng)
    )
    assert "real" in names
    assert len(names) <= 3


def test_the_plan_for_a_difference_finds_it_four_times_of_five() -> None:
    n = count_conversations_for_difference(0.5, 1.0)
    rng = np.random.default_rng(3)
    assert n == pytest.approx(63, abs=1)
    a = rng.normal(size=(400, n))
    b = rng.normal(size=(400, n)) + 0.5
    found = np.abs(b.mean(1) - a.mean(1)) > 1.96 * np.sqrt((a.var(1) + b.var(1)) / n)
    assert 0.73 < found.mean() < 0.87


def test_the_index_of_drift_is_the_formula_worked_by_hand() -> None:
    p = np.array([50.5, 50.5]) / 101
    q = np.array([75.5, 25.5]) / 101
    assert compute_population_stability_index(
        np.array([50.0, 50.0]), np.array([75.0, 25.0])
    ) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_a_population_that_moved_is_marked_and_samples_of_one_seldom_or_of_one_value_never() -> (
    None
):
    rng = np.random.default_rng(0)
    assert (
        sum(
            measure_stability_of_two_samples(
                rng.normal(size=400), rng.normal(size=200), rng, 200
            ).marked
            for _ in range(100)
        )
        <= 8
    )
    found = measure_stability_of_two_samples(
        rng.normal(size=500), rng.normal(0.6, 1, size=500), rng
    )
    assert found.marked
    assert found.value > 0.2
    assert not measure_stability_of_two_samples(np.ones(100), np.ones(50), rng).marked


def test_sure_probabilities_foretell_no_loss() -> None:
    assert compute_expected_log_loss(np.array([0.0, 1.0])) == 0
    assert compute_expected_log_loss(np.array([0.5])) == pytest.approx(np.log(2))


@pytest.mark.parametrize("tied", [False, True])
def test_halves_of_one_log_are_rarely_called_unlike(tied: bool) -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=320)
    if tied:
        # built-in answers: most conversations share one of few scores
        few = np.array([-3.6, -4.4, -13.8, -15.6, -25.2, -25.9, -27.3])
        values = rng.choice(few, size=320, p=[0.4, 0.25, 0.08, 0.08, 0.08, 0.08, 0.03])
    alarms = []
    for _ in range(100):
        shuffled = rng.permutation(values)
        alarms.append(
            is_drift_significant(
                measure_stability_of_two_samples(shuffled[:160], shuffled[160:], rng, 200)
            )
        )
    assert np.mean(alarms) <= 0.05
    # what has moved is still told
    assert is_drift_significant(measure_stability_of_two_samples(values, values - 8, rng))
