"""What all policies promise, and what is each one's own."""

from typing import Any

import numpy as np
import pytest
from plain_loops import plain_greedy, plain_loss

from pollex.errors import BadLabels, WrongUse
from pollex.selection.policies import (
    CROSS_VALIDATED_ALPHAS_BY_POLICY,
    SELECTION_POLICY_BY_NAME,
    select_rubrics,
    separation,
)
from pollex.selection.policies.ucb import estimate_rubric_rewards_by_bandit
from pollex.selection.pool import Pool, Selection

Problem = tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]
every_policy = pytest.mark.parametrize("policy", sorted(SELECTION_POLICY_BY_NAME))


def problem(n: int = 60, r: int = 14, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 2 == 0
    values = (
        np.clip(
            np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.5, 1.5, r)), 0, 4
        )
        * 2.5
    )
    sat = np.arange(r) % 3 > 0
    return values - 10 * ~sat, positive, sat, [f"rubric-{i:02}" for i in range(r)]


def chosen(
    given: Problem, budget: tuple[int, int], policy: str, alpha: float = 1.0, seed: int = 0
) -> Selection:
    return select_rubrics(*given, budget, alpha, np.random.default_rng(seed), policy)


def satisfying(values: Any, positive: Any) -> Problem:
    """Rubrics of satisfaction, called a, b, c and so on."""
    columns = np.array(values, float)
    return (
        columns,
        np.array(positive, bool),
        np.ones(columns.shape[1], bool),
        list("abc"[: columns.shape[1]]),
    )


def test_an_unknown_policy_and_one_class_are_refused() -> None:
    with pytest.raises(WrongUse, match=", ".join(sorted(SELECTION_POLICY_BY_NAME))):
        chosen(problem(), (2, 2), "best")
    values, _, sat, ids = problem()
    with pytest.raises(BadLabels):
        Pool.of(values, np.ones(len(values), bool), sat, ids, (1, 1))


@every_policy
@pytest.mark.parametrize("budget", [(3, 2), (0, 3), (100, 100), (0, 0)])
def test_budgets_are_kept_and_every_rubric_is_chosen_or_dropped_once(
    policy: str, budget: tuple[int, int]
) -> None:
    sat = problem()[2]
    selection = chosen(problem(), budget, policy)
    assert sat[selection.chosen].sum() == min(budget[0], sat.sum())
    assert (~sat[selection.chosen]).sum() == min(budget[1], (~sat).sum())
    everyone = selection.chosen.tolist() + [drop.index for drop in selection.drops]
    assert sorted(everyone) == list(range(len(sat)))
    for drop in selection.drops:  # without a budget, a kind is dropped without a loss
        assert (
            (drop.loss is None)
            == (drop.beaten_by is None)
            == (budget[0 if sat[drop.index] else 1] == 0)
        )


@every_policy
def test_a_step_has_the_loss_of_the_set_so_far_and_a_drop_that_of_the_last_step_open_to_its_kind(
    policy: str,
) -> None:
    values, positive, sat, _ = problem()
    selection = chosen(problem(), (4, 2), policy, 0.7)

    def loss(columns: list[int]) -> Any:
        scores = values[:, columns].sum(1)
        return pytest.approx(
            plain_loss(scores.tolist(), positive.tolist(), 0.7, len(columns)), abs=1e-9
        )

    for size, step in enumerate(selection.steps, start=1):
        assert step.loss == loss(selection.chosen[:size].tolist())
        assert step.loss == pytest.approx(
            -step.correctness / (10 * size) + 0.7 * step.sharpness, abs=1e-12
        )
    for drop in selection.drops:
        last = max(
            i for i, step in enumerate(selection.steps) if sat[step.index] == sat[drop.index]
        )
        assert drop.beaten_by == selection.chosen[last]
        assert drop.loss == loss([*selection.chosen[:last].tolist(), drop.index])
    assert selection.scores(values) == pytest.approx(values[:, selection.chosen].sum(1))


@every_policy
def test_the_same_seed_chooses_the_same_rubrics_in_whatever_order_they_come_and_of_ties_the_smaller_id(
    policy: str,
) -> None:
    values, positive, sat, ids = problem()
    first = chosen(problem(), (4, 2), policy, seed=5)
    order = np.random.default_rng(1).permutation(len(ids))
    shuffled = [ids[i] for i in order]
    again = chosen((values[:, order], positive, sat[order], shuffled), (4, 2), policy, seed=5)
    assert [ids[i] for i in first.chosen] == [shuffled[i] for i in again.chosen]
    values, positive, _, _ = problem(n=16)  # one batch of the bandit: it sees equals, too
    same = np.repeat(values[:, [1]], 4, axis=1)
    same[:, 2] += 1e-13  # what another order of summing does
    tied = chosen((same, positive, np.ones(4, bool), ["d", "b", "a\0", "c"]), (2, 0), policy)
    assert tied.chosen.tolist() == [2, 1]


@every_policy
def test_an_empty_pool_gives_an_empty_selection(policy: str) -> None:
    selection = chosen(
        (np.empty((2, 0)), np.array([True, False]), np.empty(0, bool), []), (3, 3), policy
    )
    assert selection.steps == ()
    assert selection.scores(np.empty((2, 0))).tolist() == [0, 0]


@every_policy
def test_a_policy_without_a_grid_is_the_same_for_every_alpha(policy: str) -> None:
    def taken(seed: int, alpha: float) -> list[int]:
        return sorted(chosen(problem(r=10, seed=seed), (2, 2), policy, alpha, 1).chosen.tolist())

    same = all(taken(seed, 0.0) == taken(seed, alpha) for seed in range(8) for alpha in (0.5, 20.0))
    assert same == (len(CROSS_VALIDATED_ALPHAS_BY_POLICY[policy]) == 1)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 20.0])
def test_greedy_agrees_with_the_plain_loop(alpha: float) -> None:
    for seed in range(3):
        values, positive, sat, ids = problem(n=20, r=8, seed=seed)
        expected = plain_greedy(
            values.tolist(), positive.tolist(), sat.tolist(), ids, (3, 2), alpha
        )
        assert (
            chosen((values, positive, sat, ids), (3, 2), "greedy", alpha).chosen.tolist()
            == expected
        )


def test_brute_force_ranks_by_the_summed_score_whatever_the_labels() -> None:
    # Sums: 20, 30, 25. LC: 10, −5, 2.5.
    given = satisfying([[10.0, 5, 7.5], [10, 5, 5], [0, 10, 5], [0, 10, 7.5]], [1, 1, 0, 0])
    assert chosen(given, (2, 0), "brute_force").chosen.tolist() == [1, 2]


def test_the_bandit_looks_again_at_what_looks_good_and_finds_the_better_arms() -> None:
    # Three arms are better by 0.8; the mean of one batch of 16 has a standard error of 0.5, too
    # much to tell by.
    rng = np.random.default_rng(2)
    values = rng.integers(0, 3, (400, 30)) * 2.5
    values += 2.5 - values.mean(0)
    values[:, [4, 17, 23]] += 0.8
    pool = Pool.of(
        values, np.arange(400) % 2 == 0, np.ones(30, bool), [f"{i:02}" for i in range(30)], (3, 0)
    )
    found = [
        np.argsort(-estimate_rubric_rewards_by_bandit(pool, np.random.default_rng(seed)))[
            :3
        ].tolist()
        for seed in range(20)
    ]
    # of 60; one batch alone finds about half
    assert sum(arm in (4, 17, 23) for arms in found for arm in arms) >= 54


NOISE = np.array([1.0, 1, -1, -1] * 2)
OTHER = np.array([1.0, -1, 1, -1] * 2)
EIGHT = np.arange(8) < 4


@pytest.mark.parametrize(
    ("values", "alpha", "expected"),
    [
        # It prefers what adds to the gap over a copy that adds to the spread. LC of "a" and its
        # copy is 4 each, that of "c" 3, whose noise has nothing to do with theirs: s² of a + b is 4
        # times, that of a + c 2 times, that of one. 8 / 2 = 4 is less than 7 / √2 = 4.9.
        (np.stack([4 * EIGHT + NOISE, 4 * EIGHT + NOISE, 3 * EIGHT + OTHER], axis=1), 1.0, [0, 2]),
        (np.stack([4 * EIGHT + NOISE, 4 * EIGHT + NOISE, 3 * EIGHT + OTHER], axis=1), 0.0, [0, 1]),
        # Of rubrics that point the wrong way it takes the least wrong, and without any spread it
        # goes by the gap.
        (np.where(EIGHT[:, None], 0.0, [5.0, 2.5, 7.5]) + 0.5 * OTHER[:, None], 0.5, [1, 0]),
        (np.where(EIGHT[:, None], [2.5, 10.0, 5.0], 0.0), 0.75, [1, 2]),
    ],
)
def test_separation_worked_by_hand(values: np.ndarray, alpha: float, expected: list[int]) -> None:
    pool = Pool.of(*satisfying(values, EIGHT), (2, 0))
    assert separation.choose(pool, alpha, np.random.default_rng(0)).tolist() == expected
