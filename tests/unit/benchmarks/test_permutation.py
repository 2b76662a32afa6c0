import itertools

import numpy as np
import pytest
from permutation import compared_correlations, compared_losses
from scipy.stats import pearsonr, permutation_test

from pollex.errors import WrongUse


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_models_that_were_measured_on_different_judgments_are_refused() -> None:
    with pytest.raises(WrongUse, match="same judgments"):
        compared_losses(np.zeros(3), np.zeros(2), np.zeros(3, int), rng())
    with pytest.raises(WrongUse, match="same judgments"):
        compared_correlations(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(2, int), rng())


def test_what_can_not_be_compared_says_why() -> None:
    assert compared_losses(np.zeros(0), np.zeros(0), np.zeros(0, int), rng()).undefined == "no judgments"
    infinite = compared_losses(np.array([np.inf, 1]), np.ones(2), np.arange(2), rng())
    assert (infinite.difference, infinite.p, infinite.undefined) == (None, None, "a loss is infinite")
    x = np.arange(4.0)
    assert compared_correlations(x, np.ones(4), x, np.arange(4), rng()).undefined == "all predictions are alike"
    assert compared_correlations(x, x, np.ones(4), np.arange(4), rng()).undefined == "all answers are alike"


def test_equal_models_do_not_differ() -> None:
    losses = np.array([1.0, 2.0, 3.0])
    found = compared_losses(losses, losses, np.arange(3), rng())
    assert (found.difference, found.p, found.texts, found.exact) == (0, 1, 0, True)
    same = compared_correlations(losses, losses, np.array([1.0, 3.0, 2.0]), np.arange(3), rng())
    assert (same.difference, same.p) == (0, 1)


def test_three_texts_worked_by_hand() -> None:
    # Differences 1, 2, 3 of a mean of 2. Of the 8 flips only +++ and −−− sum to 6 in size: p = 2/8.
    found = compared_losses(np.array([1.0, 2, 3]), np.zeros(3), np.arange(3), rng())
    assert (found.difference, found.p, found.exact) == (2, 0.25, True)


def test_the_judgments_of_a_text_are_flipped_together() -> None:
    # Two texts, each with three judgments: 4 ways, of which two are as extreme.
    found = compared_losses(np.array([1.0, 1, 1, 2, 2, 2]), np.zeros(6), np.array([9, 9, 9, 4, 4, 4]), rng())
    assert (found.difference, found.p, found.texts) == (1.5, 0.5, 2)


def test_the_exact_p_agrees_with_scipy() -> None:
    made = np.random.default_rng(3)
    first, second = made.normal(0.5, 1, 11), made.normal(0, 1, 11)
    trusted = permutation_test(
        (first, second), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )
    found = compared_losses(first, second, np.arange(11), rng())
    assert found.exact
    assert found.difference == pytest.approx(trusted.statistic, abs=1e-9)
    assert found.p == pytest.approx(trusted.pvalue, abs=1e-9)


def test_many_texts_are_flipped_at_random_and_p_is_never_0() -> None:
    made = np.random.default_rng(4)
    first, second = made.normal(0.05, 1, 300), made.normal(0, 1, 300)
    found = compared_losses(first, second, np.arange(300), rng(), 4000)
    z = (first - second).sum() / np.sqrt(((first - second) ** 2).sum())
    from scipy.stats import norm

    assert not found.exact
    assert found.p == pytest.approx(2 * norm.sf(abs(z)), abs=0.03)
    certain = compared_losses(first + 9, second, np.arange(300), rng(), 999)
    assert certain.p == 1 / 1000


def test_swapping_correlations_agrees_with_all_swaps_by_hand() -> None:
    made = np.random.default_rng(5)
    given, text = made.normal(size=8), np.array([0, 0, 1, 2, 3, 3, 4, 5])
    first, second = given + made.normal(size=8), made.normal(size=8)

    def gap(a: np.ndarray, b: np.ndarray) -> float:
        return float(pearsonr(a, given)[0] - pearsonr(b, given)[0])

    gaps = []
    for swap in itertools.product([False, True], repeat=6):
        swapped = np.array(swap)[text]
        gaps.append(gap(np.where(swapped, second, first), np.where(swapped, first, second)))
    found = compared_correlations(first, second, given, text, rng())
    assert found.difference == pytest.approx(gap(first, second), abs=1e-9)
    assert found.p == pytest.approx(np.mean(np.abs(gaps) >= abs(gap(first, second)) - 1e-9), abs=1e-9)
    assert found.exact


def test_random_swaps_find_a_good_predictor_better_than_noise() -> None:
    made = np.random.default_rng(6)
    given = made.normal(size=200)
    noise = made.normal(size=200)
    found = compared_correlations(given + made.normal(size=200), noise, given, np.arange(200), rng(), 500)
    assert found.p == 1 / 501
    alike = compared_correlations(noise, made.normal(size=200), given, np.arange(200), rng(), 500)
    assert alike.p is not None
    assert alike.p > 0.05
