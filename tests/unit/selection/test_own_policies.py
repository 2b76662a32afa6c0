"""What all policies promise about α, and the one that the recorded run was made with."""

import numpy as np
import pytest

from pollex.selection.policies import ALPHAS, POLICIES, separation
from pollex.selection.pool import Pool
from pollex.services.recorded import Recording


def problem(seed: int = 0, n: int = 60, r: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 2 == 0
    values = np.clip(np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.5, 1.5, r)), 0, 4) * 2.5
    sat = np.arange(r) % 2 > 0
    return values - 10 * ~sat, positive, sat, [f"{i:02}" for i in range(r)]


def test_separation_is_there_for_the_recorded_run_which_was_chosen_by_it() -> None:
    assert Recording.bundled().policy == "separation"


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


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_policy_without_a_grid_is_the_same_for_every_alpha(policy: str) -> None:
    def chosen(seed: int, alpha: float) -> tuple[int, ...]:
        pool = Pool.of(*problem(seed), (2, 2))
        return tuple(np.sort(POLICIES[policy](pool, alpha, np.random.default_rng(1))).tolist())

    same = all(chosen(seed, 0.0) == chosen(seed, alpha) for seed in range(8) for alpha in (0.5, 20.0))
    assert same == (len(ALPHAS[policy]) == 1)
