"""Entropy, sides of τ and the fitted τ on whole arrays: by hand, and against the plain formula and scipy."""

from math import log

import numpy as np
import pytest
from scipy.stats import binomtest, entropy

from pollex.measures.intervals import compute_clopper_pearson_interval
from pollex.rooms.judge.agents.votes import compute_diversity_entropy, find_mode
from pollex.rooms.judge.selection.consensus import (
    TIE_MODE,
    TauSide,
    compute_entropies,
    crossfit_tau,
    find_modes,
    fit_tau,
    get_interval_ends,
    split_at,
)

VOTES = np.array([[7, 0, 0], [6, 1, 0], [3, 3, 1], [0, 0, 0], [2, 2, 2], [0, 0, 1]])
NONE = np.array([], dtype=np.int64)


def picks(*given: int) -> np.ndarray:
    return np.array(given, dtype=np.int64)


def test_entropies_are_those_of_the_ensemble_and_of_scipy_and_without_votes_there_is_none() -> None:
    voted = [0, 1, 2, 4, 5]
    found = compute_entropies(VOTES)
    assert np.isnan(found[3])
    np.testing.assert_allclose(found[voted], entropy(VOTES[voted], axis=1), atol=1e-12)
    np.testing.assert_allclose(
        found[voted], [compute_diversity_entropy(row) for row in VOTES[voted].tolist()], atol=1e-12
    )
    assert not np.signbit(found[voted]).any()
    assert find_modes(VOTES).tolist() == [0, 0, TIE_MODE, TIE_MODE, TIE_MODE, 2]
    assert [find_mode(row) for row in VOTES.tolist()] == [0, 0, None, None, None, 2]


def test_the_sides_of_tau_are_those_counted_by_hand_and_nothing_on_a_side_has_no_score() -> None:
    """Of six conversations three pass; two of these are right: (2 − 1)/3. Of the rest one of three is right."""
    de = np.array([0.0, 0.0, 0.4, 0.6, 0.7, np.nan])
    picked = picks(0, 1, 1, 0, TIE_MODE, TIE_MODE)
    truth = picks(0, 0, 1, 0, 1, 1)
    found = split_at(de, picked, truth, 0.4)
    assert (found.passed, found.left) == (TauSide(3, 2, 0), TauSide(3, 1, 2))
    scores = found.passed.as_json["score"], found.left.as_json["score"]
    assert (found.coverage.value, *scores) == pytest.approx((0.5, 1 / 3, -1 / 3))
    assert split_at(de, picked, truth, 0.7).passed.n == 4  # a tie never passes
    empty = split_at(NONE.astype(float), NONE, NONE, 0.5).as_json
    assert (empty["coverage"], empty["coverage_interval"]) == (None, None)
    assert (empty["passed"]["score"], empty["passed"]["interval"]) == (None, None)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 10), (89, 100)])
def test_intervals_of_shares_are_those_of_scipy(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.95, "exact")
    assert compute_clopper_pearson_interval(hits, n) == pytest.approx(
        (expected.low, expected.high), abs=1e-12
    )
    assert TauSide(n, hits, 0).as_json["interval"] == pytest.approx(
        (2 * expected.low - 1, 2 * expected.high - 1), abs=1e-12
    )


@pytest.mark.parametrize(
    ("wrong", "precision", "tau", "passed", "right"),
    [
        ([], 1.0, 0.6, 8, 8),
        ([5], 1.0, 0.0, 4, 4),
        ([5], 0.8, 0.6, 8, 7),  # 5/6 at 0.4, and 7/8 behind it
        ([5, 6], 0.8, 0.4, 6, 5),  # 6/8 is too little
        ([0, 5, 6, 7], 0.9, None, 0, 0),
        ([0], 0.76, 0.6, 8, 7),  # 3/4 at 0 is too little, and later it is enough
    ],
)
def test_the_fitted_tau_is_the_highest_that_keeps_to_the_precision(
    wrong: list[int], precision: float, tau: float | None, passed: int, right: int
) -> None:
    de = np.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.4, 0.6, 0.6])
    truth = np.isin(np.arange(8), wrong).astype(np.int64)
    order = np.random.default_rng(0).permutation(8)
    found = fit_tau(de[order], picks(*[0] * 8), truth[order], precision)
    assert (found.tau, found.n, found.passed, found.right) == (tau, 8, passed, right)
    assert found.precision.value == (right / passed if passed else None)
    assert (found.precision.low is None) == (tau is None)
    assert (found.best >= precision) == (tau is not None)  # type: ignore[operator]


def test_conversations_of_one_entropy_pass_together_and_ties_are_never_fitted_to() -> None:
    """Of three at the same entropy two are right: not the first two alone may pass."""
    de = np.full(3, log(2) / 2)
    truth = picks(0, 0, 1)
    found = fit_tau(de, picks(0, 0, 0), truth, 1.0)
    assert (found.tau, found.best) == (None, 2 / 3)
    assert fit_tau(de, picks(0, 0, TIE_MODE), truth, 1.0).passed == 2
    nothing = fit_tau(np.full(3, np.nan), np.full(3, TIE_MODE), truth, 0.5)
    assert (nothing.tau, nothing.best) == (None, None)


def test_each_fold_is_cut_at_the_tau_of_the_others_as_counted_by_hand() -> None:
    """Fold 0 goes by 0.6, to which fold 1 is right: 5 of its 6 pass. Fold 1 goes by 0, since fold 0 errs above it."""
    de = np.array([0.0, 0.0, 0.6, 0.6, 0.6, 0.7, 0.0, 0.0, 0.0, 0.6, 0.6, 0.6])
    truth = picks(0, 0, 1, 1, *[0] * 8)
    folds = np.repeat([0, 1], 6)
    picked = picks(*[0] * 12)
    found = crossfit_tau(de, picked, truth, 0.9, folds)
    assert (found.passed, found.left) == (TauSide(5 + 3, 3 + 3, 0), TauSide(1 + 3, 1 + 3, 0))
    assert found.passed.precision.value == 6 / 8
    assert get_interval_ends(found.passed.precision) == pytest.approx(
        compute_clopper_pearson_interval(6, 8)
    )
    # on what it was fitted to it looks better
    assert fit_tau(de, picked, truth, 0.9).precision.value == 1.0
    # Where the others reach no precision a fold passes nothing; fold 1 goes by fold 0, which is
    # right.
    none = crossfit_tau(np.zeros(4), picks(0, 0, 0, 0), picks(0, 0, 1, 1), 0.9, picks(0, 0, 1, 1))
    assert (none.passed, none.coverage.value) == (TauSide(2, 0, 0), 0.5)


def test_conversations_that_go_together_count_as_one_in_intervals() -> None:
    de = np.repeat([0.0, 0.6], 4)
    truth = picks(0, 0, 0, 1, 0, 1, 0, 1)
    folds = picks(0, 0, 1, 1, 0, 0, 1, 1)
    picked = picks(*[0] * 8)
    users = picks(0, 0, 1, 1, 2, 2, 2, 2)
    alone, paired = (
        crossfit_tau(de, picked, truth, 0.5, folds, together) for together in (None, users)
    )
    assert (paired.passed.n, paired.passed.right) == (alone.passed.n, alone.passed.right) == (8, 5)
    assert (paired.passed.units, paired.units, alone.passed.units) == (3, 3, None)
    assert get_interval_ends(paired.passed.precision) == pytest.approx(
        compute_clopper_pearson_interval(5 * 3 / 8, 3)
    )
    assert (get_interval_ends(paired.coverage), get_interval_ends(alone.coverage)) == (
        compute_clopper_pearson_interval(3, 3),
        compute_clopper_pearson_interval(8, 8),
    )
    fitted = fit_tau(de, picked, truth, 0.7, users)
    assert (fitted.passed, fitted.right, fitted.units) == (4, 3, 2)
    assert get_interval_ends(fitted.precision) == pytest.approx(
        compute_clopper_pearson_interval(3 * 2 / 4, 2)
    )


def test_what_cross_fitting_tells_is_what_new_conversations_bring() -> None:
    """Runs of a judge that is right with a chance drawn for each conversation, fitted on 200 and used on 20,000."""
    rng = np.random.default_rng(5)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        truth = rng.integers(2, size=n)
        chance = np.where(rng.random(n) < 0.9, rng.uniform(0.7, 1.0, n), rng.uniform(0.0, 0.6, n))
        right = rng.binomial(7, chance)
        votes = np.where(truth[:, None] == [0, 1], right[:, None], 7 - right[:, None])
        return compute_entropies(votes), find_modes(votes), truth

    gaps = []
    for _ in range(40):
        known = drawn(200)
        new = drawn(20_000)
        told = crossfit_tau(*known, 0.85, np.arange(200) % 10).passed.precision.value
        kept = split_at(*new, fit_tau(*known, 0.85).tau).passed.precision.value  # type: ignore[arg-type]
        gaps.append(told - kept)  # type: ignore[operator]
    assert abs(np.mean(gaps)) < 0.02
