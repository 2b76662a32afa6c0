from __future__ import annotations

import numpy as np
import pytest

from pollex.errors import BadLabels, WrongUse
from pollex.selection.policies import POLICIES
from pollex.selection.stability import stability


def problem(n: int = 40, r: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    positive = np.arange(n) % 2 == 0
    values = rng.integers(0, 5, (n, r)) * 2.5
    values[:, 3] = np.where(positive, 10.0, 0.0)
    return values, positive, np.arange(r) < 5, [f"{i:02}" for i in range(r)]


def test_one_class_and_an_unknown_policy_are_refused() -> None:
    values, positive, sat, ids = problem()
    rng = np.random.default_rng(0)
    with pytest.raises(BadLabels):
        stability(values, np.ones(40, bool), sat, ids, (1, 1), 1.0, rng)
    with pytest.raises(WrongUse):
        stability(values, positive, sat, ids, (1, 1), 1.0, rng, policy="best")


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_shares_add_up_to_the_budget_of_each_kind(policy: str) -> None:
    values, positive, sat, ids = problem()
    shares = stability(values, positive, sat, ids, (2, 1), 1.0, np.random.default_rng(0), policy, resamples=10)
    assert shares[sat].sum() == pytest.approx(2)
    assert shares[~sat].sum() == pytest.approx(1)
    assert ((shares >= 0) & (shares <= 1)).all()


def test_a_rubric_that_always_separates_is_always_chosen_and_one_of_equals_is_not() -> None:
    values, positive, sat, ids = problem()
    shares = stability(values, positive, sat, ids, (1, 1), 0.0, np.random.default_rng(0), resamples=40)
    assert shares[3] == 1
    assert (shares[~sat] < 1).all()


def test_one_conversation_of_a_class_is_in_every_resample() -> None:
    values, _, sat, ids = problem()
    positive = np.arange(40) == 7
    assert stability(values, positive, sat, ids, (1, 1), 1.0, np.random.default_rng(0), resamples=5).sum() == 2


def test_the_same_seed_gives_the_same_shares_and_progress_is_told() -> None:
    values, positive, sat, ids = problem()
    told: list[tuple[int, int]] = []
    first, again = (
        stability(
            values, positive, sat, ids, (2, 1), 1.0, np.random.default_rng(4), resamples=6, progress=progress
        ).tolist()
        for progress in (None, lambda done, wanted: told.append((done, wanted)))
    )
    assert first == again
    assert told == [(done, 6) for done in range(1, 7)]
