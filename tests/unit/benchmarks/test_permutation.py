import itertools

import numpy as np
import pytest
from permutation import compared_correlations, compared_losses
from scipy.stats import norm, pearsonr, permutation_test

from pollex.errors import WrongUse


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_models_that_were_measured_on_different_judgments_are_refused() -> None:
    with pytest.raises(WrongUse, match="same judgments"):
        compared_losses(np.zeros(3), np.zeros(2), np.zeros(3, int), rng())
    with pytest.raises(WrongUse, match="same judgments"):
        compared_correlations(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(2, int), rng())


def test_what_can_not_be_compared_says_why_and_equal_models_do_not_differ() -> None:
    assert (
        compared_losses(np.zeros(0), np.zeros(0), np.zeros(0, int), rng()).undefined
        == "no judgments"
    )
    infinite = compared_losses(np.array([np.inf, 1]), np.ones(2), np.arange(2), rng())
    assert (infinite.difference, infinite.p, infinite.undefined) == (
        None,
        None,
        "a loss is infinite",
    )
    x = np.arange(4.0)
    text = np.arange(4)
    assert (
        compared_correlations(x, np.ones(4), x, text, rng()).undefined
        == "all predictions are alike"
    )
    assert compared_correlations(x, x, np.ones(4), text, rng()).undefined == "all answers are alike"
    found = compared_losses(x, x, text, rng())
    assert (found.difference, found.p, found.texts, found.exact) == (0, 1, 0, True)
    same = compared_correlations(x, x, x**2, text, rng())
    assert (same.difference, same.p) == (0, 1)


def test_flips_worked_by_hand() -> None:
    # Differences 1, 2, 3 of a mean of 2. Of the 8 flips only +++ and −−− sum to 6 in size: p = 2/8.
    found = compared_losses(np.array([1.0, 2, 3]), np.zeros(3), np.arange(3), rng())
    assert (found.difference, found.p, found.exact) == (2, 0.25, True)
    # The judgments of a text are flipped together: of two texts 4 ways, of which two are as
    # extreme.
    found = compared_losses(
        np.array([1.0, 1, 1, 2, 2, 2]), np.zeros(6), np.array([9, 9, 9, 4, 4, 4]), rng()
    )
    assert (found.difference, found.p, found.texts) == (1.5, 0.5, 2)


def test_the_exact_p_agrees_with_scipy() -> None:
    made = rng(3)
    first = made.normal(0.5, 1, 9)
    second = made.normal(0, 1, 9)
    trusted = permutation_test(
        (first, second), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )
    found = compared_losses(first, second, np.arange(9), rng())
    assert found.exact
    assert (found.difference, found.p) == pytest.approx(
        (trusted.statistic, trusted.pvalue), abs=1e-9
    )


def test_many_texts_are_flipped_at_random_and_p_is_never_0() -> None:
    made = rng(4)
    text = np.arange(300)
    first = made.normal(0.05, 1, 300)
    second = made.normal(0, 1, 300)
    found = compared_losses(first, second, text, rng(), 4000)
    z = (first - second).sum() / np.sqrt(((first - second) ** 2).sum())
    assert (found.exact, found.p) == (False, pytest.approx(2 * norm.sf(abs(z)), abs=0.03))
    assert compared_losses(first + 9, second, text, rng(), 999).p == 1 / 1000
    better = compared_correlations(first + second, first, second, text, rng(), 500)
    assert better.p == 1 / 501
    alike = compared_correlations(first, made.normal(size=300), second, text, rng(), 500)
    assert alike.p > 0.05  # type: ignore[operator]


def test_swapping_correlations_agrees_with_all_swaps_by_hand() -> None:
    made = rng(5)
    given = made.normal(size=8)
    text = np.array([0, 0, 1, 2, 3, 3, 4, 5])
    first = given + made.normal(size=8)
    second = made.normal(size=8)

    def gap(swap: np.ndarray) -> float:
        sides = np.where(swap, second, first), np.where(swap, first, second)
        return float(pearsonr(sides[0], given)[0] - pearsonr(sides[1], given)[0])

    gaps = [gap(np.array(swap)[text]) for swap in itertools.product([False, True], repeat=6)]
    found = compared_correlations(first, second, given, text, rng())
    assert found.difference == pytest.approx(gaps[0], abs=1e-9)
    assert found.p == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9), abs=1e-9)
    assert found.exact
