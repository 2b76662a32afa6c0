from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from plain_loops import plain_loss

from pollex.selection.policies import ALPHAS, POLICIES, greedy, random_order, separation, swaps
from pollex.selection.pool import Pool


def problem(seed: int = 0, n: int = 60, r: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 2 == 0
    values = np.clip(np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.5, 1.5, r)), 0, 4) * 2.5
    sat = np.arange(r) % 2 > 0
    return values - 10 * ~sat, positive, sat, [f"{i:02}" for i in range(r)]


def loss(values: np.ndarray, positive: np.ndarray, chosen: list[int], alpha: float) -> float:
    return plain_loss(values[:, chosen].sum(1).tolist(), positive.tolist(), alpha, len(chosen))


def test_separation_prefers_what_adds_to_the_gap_over_a_copy_that_adds_to_the_spread() -> None:
    # LC of "a" and its copy is 4 each, that of "c" 3, whose noise has nothing to do with theirs:
    # s² of a + b is 4 times, that of a + c 2 times, that of one. 8 / 2 = 4 is less than 7 / √2 = 4.9.
    noise, other = np.array([1.0, 1, -1, -1] * 2), np.array([1.0, -1, 1, -1] * 2)
    positive = np.arange(8) < 4
    values = np.stack([4 * positive + noise, 4 * positive + noise, 3 * positive + other], axis=1)
    pool = Pool.of(values, positive, np.ones(3, bool), ["a", "b", "c"], (2, 0))
    rng = np.random.default_rng(0)
    assert separation.choose(pool, 1.0, rng).tolist() == [0, 2]
    assert separation.choose(pool, 0.0, rng).tolist() == [0, 1]


def test_the_covariance_within_the_classes_worked_by_hand() -> None:
    # Deviations of the positives ±1 and ±2, of the negatives ±1 and 0; n − 2 = 2 degrees of freedom.
    # Variances (2 + 2)/2 = 2 and (8 + 0)/2 = 4, covariance (4 + 0)/2 = 2, of which a fifth is taken away.
    values, positive = np.array([[1.0, 2], [-1, -2], [6, 5], [4, 5]]), np.array([True, True, False, False])
    pool = Pool.of(values, positive, np.ones(2, bool), ["a", "b"], (1, 0))
    assert separation.within(pool) == pytest.approx(np.array([[2, 1.6], [1.6, 4]]))


def test_separation_of_rubrics_that_point_the_wrong_way_takes_the_least_wrong() -> None:
    positive = np.arange(8) < 4
    values = np.where(positive[:, None], [0.0, 0, 0], [5.0, 2.5, 7.5]) + np.array([0.5, -0.5] * 4)[:, None]
    pool = Pool.of(values, positive, np.ones(3, bool), ["a", "b", "c"], (2, 0))
    assert separation.choose(pool, 0.5, np.random.default_rng(0)).tolist() == [1, 0]


def test_separation_without_any_spread_chooses_by_the_gap() -> None:
    positive = np.arange(6) < 3
    values = np.where(positive[:, None], [2.5, 10.0, 5.0], 0.0)
    pool = Pool.of(values, positive, np.ones(3, bool), ["a", "b", "c"], (3, 0))
    assert separation.choose(pool, 0.75, np.random.default_rng(0)).tolist() == [1, 2, 0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_no_exchange_lowers_the_loss_of_swaps_and_greedy_is_never_better(seed: int, alpha: float) -> None:
    values, positive, sat, ids = problem(seed)
    pool, rng = Pool.of(values, positive, sat, ids, (3, 2)), np.random.default_rng(0)
    chosen = swaps.choose(pool, alpha, rng).tolist()
    reached = loss(values, positive, chosen, alpha)
    assert reached <= loss(values, positive, greedy.choose(pool, alpha, rng).tolist(), alpha) + 1e-9
    others = [index for index in range(len(sat)) if index not in chosen]
    for leaving, coming in product(chosen, others):
        if sat[leaving] == sat[coming]:
            exchanged = [index for index in chosen if index != leaving] + [coming]
            assert loss(values, positive, exchanged, alpha) >= reached - 1e-9


def test_swaps_find_a_set_that_greedy_misses() -> None:
    found = []
    for seed in range(12):
        values, positive, sat, ids = problem(seed, n=24)
        pool, rng = Pool.of(values, positive, sat, ids, (2, 2)), np.random.default_rng(0)
        ours, theirs = (
            loss(values, positive, one(pool, 3.0, rng).tolist(), 3.0) for one in (swaps.choose, greedy.choose)
        )
        kinds = np.flatnonzero(sat), np.flatnonzero(~sat)
        pairs = product(*(combinations(kind.tolist(), 2) for kind in kinds))
        best = min(loss(values, positive, [*up, *down], 3.0) for up, down in pairs)
        assert best - 1e-9 <= ours <= theirs + 1e-9
        found.append(ours < theirs - 1e-9)
    assert any(found)


def test_lots_fall_on_every_rubric_of_a_kind_alike() -> None:
    values, positive, sat, ids = problem(r=8)
    pool, rng = Pool.of(values, positive, sat, ids, (1, 2)), np.random.default_rng(0)
    counts = np.zeros(8)
    for _ in range(2000):
        counts[random_order.choose(pool, 0.0, rng)] += 1
    # Shares of 1/4 and 2/4; four standard errors of a share over 2,000 draws are 0.039 and 0.045.
    assert counts[sat] / 2000 == pytest.approx(0.25, abs=0.039)
    assert counts[~sat] / 2000 == pytest.approx(0.5, abs=0.045)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_policy_without_a_grid_is_the_same_for_every_alpha(policy: str) -> None:
    def chosen(seed: int, alpha: float) -> tuple[int, ...]:
        pool = Pool.of(*problem(seed), (2, 2))
        return tuple(np.sort(POLICIES[policy](pool, alpha, np.random.default_rng(1))).tolist())

    same = all(chosen(seed, 0.0) == chosen(seed, alpha) for seed in range(8) for alpha in (0.5, 20.0))
    assert same == (len(ALPHAS[policy]) == 1)
