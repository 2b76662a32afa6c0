"""A policy that chooses by the thumbs is seen to be better than one that doesn't, and no better than the truth."""

import numpy as np
import pytest
from planted_world import PLANTED, answers, chosen_by, interval, spread
from scipy.stats import t as student

from planted.world import World, signals
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME

WORLDS = [World(seed) for seed in range(12)]
COUNT = 200


def scores(policy: str, agreement: float = 0.85) -> np.ndarray:
    """Share of the planted signals that is chosen, and AUC `[world, figure]`."""
    return np.array([chosen_by(policy, world, COUNT, agreement) for world in WORLDS])


def bounds(gaps: np.ndarray) -> tuple[float, float]:
    half = student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean() - half, gaps.mean() + half


@pytest.fixture(scope="module")
def default() -> np.ndarray:
    return scores(DEFAULT_SELECTION_POLICY_NAME)


@pytest.mark.parametrize("policy", ["brute_force", "ucb"])
def test_the_default_finds_more_of_what_was_planted_than_what_does_not_look_at_thumbs(
    policy: str, default: np.ndarray
) -> None:
    for gaps in (default - scores(policy)).T:
        assert bounds(gaps)[0] > 0.05


def test_the_default_finds_four_fifths_of_what_was_planted(default: np.ndarray) -> None:
    assert bounds(default[:, 0])[0] > 0.8


def test_no_policy_is_ahead_of_the_planted_rubrics_themselves(default: np.ndarray) -> None:
    truth = scores(PLANTED)
    assert (truth[:, 0] == 1).all()
    assert bounds(truth[:, 1] - default[:, 1])[0] > -0.005


def test_nothing_is_found_where_answers_are_drawn_by_chance() -> None:
    found = scores(DEFAULT_SELECTION_POLICY_NAME, agreement=0.5)
    low, high = bounds(found[:, 0])
    assert low < WORLDS[0].planted * 2 / len(signals()) < high
    assert bounds(found[:, 1])[0] < 0.5 < bounds(found[:, 1])[1]


def test_drawn_answers_are_on_the_true_side_as_often_as_told() -> None:
    happens = np.random.default_rng(0).random((2_000, 10)) < 0.4
    drawn = answers(happens, 0.85, np.random.default_rng(1))
    assert ((drawn > 5) == happens).mean() == pytest.approx(0.85, abs=0.01)
    assert set(np.unique(drawn)) == {0.0, 2.5, 7.5, 10.0}


def test_an_interval_over_worlds_is_students() -> None:
    # mean 2, sd 1, n = 3: t(0.975, 2) = 4.3027, half = 4.3027/√3 = 2.484
    assert interval([1.0, 2.0, 3.0, float("nan")]) == "2.000 [-0.484, 4.484]"
    assert interval([0.8, 1.0], most=1) == "0.900 [-0.371, 1.000]"
    assert interval([1.0]) == "1.000"
    assert interval([float("nan")]) == "undefined"
    assert spread(np.array([1.0, 3.0]), 27.4) == "2.0 ± 1.4 (27.4)"
