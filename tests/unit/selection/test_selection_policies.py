import numpy as np
import pytest
from plain_loops import plain_greedy, plain_loss

from pollex.errors import BadLabels, WrongUse
from pollex.selection.policies import POLICIES, select
from pollex.selection.policies.ucb import play
from pollex.selection.pool import Pool

every_policy = pytest.mark.parametrize("policy", sorted(POLICIES))


def pool(n: int = 60, r: int = 14, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 2 == 0
    values = np.clip(np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.5, 1.5, r)), 0, 4) * 2.5
    sat = np.arange(r) % 3 > 0
    return values - 10 * ~sat, positive, sat, [f"rubric-{i:02}" for i in range(r)]


def test_an_unknown_policy_is_refused_with_those_there_are() -> None:
    with pytest.raises(WrongUse, match=", ".join(sorted(POLICIES))):
        select(*pool(), (2, 2), 1.0, np.random.default_rng(0), policy="best")


def test_one_class_is_refused() -> None:
    values, _, sat, ids = pool()
    with pytest.raises(BadLabels):
        Pool.of(values, np.ones(len(values), bool), sat, ids, (1, 1))


@every_policy
@pytest.mark.parametrize("budget", [(3, 2), (0, 3), (100, 100), (0, 0)])
def test_budgets_are_kept_and_every_rubric_is_chosen_or_dropped_once(policy: str, budget: tuple[int, int]) -> None:
    values, positive, sat, ids = pool()
    selection = select(values, positive, sat, ids, budget, 1.0, np.random.default_rng(0), policy)
    assert sat[selection.chosen].sum() == min(budget[0], sat.sum())
    assert (~sat[selection.chosen]).sum() == min(budget[1], (~sat).sum())
    everyone = selection.chosen.tolist() + [drop.index for drop in selection.drops]
    assert sorted(everyone) == list(range(len(sat)))


@every_policy
def test_a_step_has_the_loss_of_the_set_so_far(policy: str) -> None:
    values, positive, sat, ids = pool()
    selection = select(values, positive, sat, ids, (3, 2), 0.7, np.random.default_rng(0), policy)
    for size, step in enumerate(selection.steps, start=1):
        scores = values[:, selection.chosen[:size]].sum(1)
        assert step.loss == pytest.approx(plain_loss(scores.tolist(), positive.tolist(), 0.7, size), abs=1e-9)
        assert step.loss == pytest.approx(-step.correctness / (10 * size) + 0.7 * step.sharpness, abs=1e-12)
    assert selection.scores(values) == pytest.approx(values[:, selection.chosen].sum(1))


@every_policy
def test_a_drop_has_the_loss_and_the_winner_of_the_last_step_open_to_its_kind(policy: str) -> None:
    values, positive, sat, ids = pool()
    selection = select(values, positive, sat, ids, (4, 2), 0.7, np.random.default_rng(0), policy)
    for drop in selection.drops:
        last = max(i for i, step in enumerate(selection.steps) if sat[step.index] == sat[drop.index])
        scores = values[:, [*selection.chosen[:last], drop.index]].sum(1)
        assert drop.beaten_by == selection.chosen[last]
        assert drop.loss == pytest.approx(plain_loss(scores.tolist(), positive.tolist(), 0.7, last + 1), abs=1e-9)


@every_policy
def test_a_kind_without_budget_is_dropped_without_a_loss(policy: str) -> None:
    values, positive, sat, ids = pool()
    selection = select(values, positive, sat, ids, (0, 2), 1.0, np.random.default_rng(0), policy)
    never_open = [drop for drop in selection.drops if sat[drop.index]]
    assert len(never_open) == sat.sum()
    assert all(drop.loss is None and drop.beaten_by is None for drop in never_open)


@every_policy
def test_the_same_seed_chooses_the_same_rubrics_in_whatever_order_they_come(policy: str) -> None:
    values, positive, sat, ids = pool()
    first = select(values, positive, sat, ids, (4, 2), 1.0, np.random.default_rng(5), policy)
    order = np.random.default_rng(1).permutation(len(ids))
    shuffled = [ids[i] for i in order]
    again = select(values[:, order], positive, sat[order], shuffled, (4, 2), 1.0, np.random.default_rng(5), policy)
    assert [ids[i] for i in first.chosen] == [shuffled[i] for i in again.chosen]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_ties_go_to_the_smaller_id(policy: str) -> None:
    values, positive, _, _ = pool(n=16)  # one batch of the bandit: it sees equals, too
    same = np.repeat(values[:, [1]], 4, axis=1)
    same[:, 2] += 1e-13  # what another order of summing does
    ids, sat = ["d", "b", "a\0", "c"], np.ones(4, bool)
    selection = select(same, positive, sat, ids, (2, 0), 1.0, np.random.default_rng(0), policy)
    assert selection.chosen.tolist() == [2, 1]


@every_policy
def test_an_empty_pool_gives_an_empty_selection(policy: str) -> None:
    positive = np.array([True, False])
    selection = select(np.empty((2, 0)), positive, np.empty(0, bool), [], (3, 3), 1.0, np.random.default_rng(0), policy)
    assert selection.steps == ()
    assert selection.scores(np.empty((2, 0))).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 20.0])
def test_greedy_agrees_with_the_plain_loop(seed: int, alpha: float) -> None:
    values, positive, sat, ids = pool(n=30, r=9, seed=seed)
    selection = select(values, positive, sat, ids, (3, 2), alpha, np.random.default_rng(0), "greedy")
    expected = plain_greedy(values.tolist(), positive.tolist(), sat.tolist(), ids, (3, 2), alpha)
    assert selection.chosen.tolist() == expected


def test_sharpness_can_overrule_correctness() -> None:
    # LC of "a" is 6 − 2.5 = 3.5, but the highest score of all is a negative's: no threshold gives a clean top.
    # LC of "b" is 17.5/3 − 10/3 = 2.5, and its precision rises as tanh does.
    values = np.array([[6, 5], [6, 2.5], [6, 10], [7.5, 5], [0, 2.5], [0, 2.5]])
    positive = np.array([True, True, True, False, False, False])
    chosen = [
        select(values, positive, np.ones(2, bool), ["a", "b"], (1, 0), alpha, np.random.default_rng(0), "greedy").steps[
            0
        ]
        for alpha in (0.0, 10.0)
    ]
    assert [step.index for step in chosen] == [0, 1]
    assert [step.correctness for step in chosen] == pytest.approx([3.5, 2.5])


def test_brute_force_ranks_by_the_summed_score_whatever_the_labels() -> None:
    # Sums: 20, 30, 25. LC: 10, −5, 2.5.
    values = np.array([[10.0, 5, 7.5], [10, 5, 5], [0, 10, 5], [0, 10, 7.5]])
    positive = np.array([True, True, False, False])
    selection = select(
        values, positive, np.ones(3, bool), ["a", "b", "c"], (2, 0), 1.0, np.random.default_rng(0), "brute_force"
    )
    assert selection.chosen.tolist() == [1, 2]


def test_the_bandit_looks_again_at_what_looks_good_and_finds_the_better_arms() -> None:
    # Three arms are better by 0.8; the mean of one batch of 16 has a standard error of 0.5, too much to tell by.
    rng = np.random.default_rng(2)
    values = rng.integers(0, 3, (400, 30)) * 2.5
    values += 2.5 - values.mean(0)
    values[:, [4, 17, 23]] += 0.8
    problem = Pool.of(values, np.arange(400) % 2 == 0, np.ones(30, bool), [f"{i:02}" for i in range(30)], (3, 0))
    found = [np.argsort(-play(problem, np.random.default_rng(seed)))[:3].tolist() for seed in range(20)]
    assert sum(arm in (4, 17, 23) for arms in found for arm in arms) >= 54  # of 60; one batch alone finds about half


def test_a_batch_as_large_as_the_log_pays_the_mean() -> None:
    # 16 conversations make one batch, whatever is drawn: the mean reward is each rubric's mean.
    values, positive, sat, ids = pool(n=16)
    assert play(Pool.of(values, positive, sat, ids, (2, 2)), np.random.default_rng(0)) == pytest.approx(values.mean(0))
