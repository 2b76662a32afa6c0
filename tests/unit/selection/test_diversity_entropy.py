"""Entropy, sides of τ and the fitted τ on whole arrays: by hand, and against the plain formula and scipy."""

from math import log

import numpy as np
import pytest
from scipy.stats import binomtest, entropy

from pollex.agents.votes import diversity_entropy, mode
from pollex.measures.intervals import share_interval
from pollex.selection.consensus import TIE, TauSide, crossfitted, ends_of, entropies, filtered, fitted_tau, modes

VOTES = np.array([[7, 0, 0], [6, 1, 0], [3, 3, 1], [0, 0, 0], [2, 2, 2], [0, 0, 1]])


def test_conversations_without_votes_have_no_entropy_and_no_mode() -> None:
    assert np.isnan(entropies(VOTES)[3])
    assert modes(VOTES).tolist() == [0, 0, TIE, TIE, TIE, 2]


def test_entropies_are_those_of_the_ensemble_and_of_scipy() -> None:
    voted = np.array([0, 1, 2, 4, 5])
    found = entropies(VOTES)[voted]
    np.testing.assert_allclose(found, entropy(VOTES[voted], axis=1), atol=1e-12)
    np.testing.assert_allclose(found, [diversity_entropy(row) for row in VOTES[voted].tolist()], atol=1e-12)
    assert [mode(row) for row in VOTES.tolist()] == [0, 0, None, None, None, 2]
    assert not np.signbit(found).any()


def test_nothing_on_a_side_has_no_score() -> None:
    side = TauSide(0, 0, 0).as_json
    assert (side["score"], side["interval"]) == (None, None)
    none = np.array([], dtype=np.int64)
    empty = filtered(none.astype(float), none, none, 0.5)
    assert (empty.as_json["coverage"], empty.as_json["coverage_interval"]) == (None, None)


def test_the_sides_of_tau_are_those_counted_by_hand() -> None:
    """Of six conversations three pass; two of these are right: (2 − 1)/3. Of the rest one of three is right."""
    de = np.array([0.0, 0.0, 0.4, 0.6, 0.7, np.nan])
    picked = np.array([0, 1, 1, 0, TIE, TIE])
    truth = np.array([0, 0, 1, 0, 1, 1])
    found = filtered(de, picked, truth, 0.4)
    assert found.passed == TauSide(3, 2, 0)
    assert found.left == TauSide(3, 1, 2)
    scores = found.passed.as_json["score"], found.left.as_json["score"]
    assert (found.coverage.value, *scores) == (0.5, pytest.approx(1 / 3), pytest.approx(-1 / 3))
    assert filtered(de, picked, truth, 0.7).passed.n == 4  # a tie never passes


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 10), (89, 100)])
def test_intervals_of_shares_are_those_of_scipy(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.95, "exact")
    assert share_interval(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
    low, high = TauSide(n, hits, 0).as_json["interval"]
    assert (low, high) == pytest.approx((2 * expected.low - 1, 2 * expected.high - 1), abs=1e-12)


DE = np.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.4, 0.6, 0.6])
PICKED = np.zeros(8, dtype=np.int64)


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
    truth = PICKED.copy()
    truth[wrong] = 1
    order = np.random.default_rng(0).permutation(8)
    found = fitted_tau(DE[order], PICKED[order], truth[order], precision)
    assert (found.tau, found.n, found.passed, found.right) == (tau, 8, passed, right)
    assert found.precision.value == (right / passed if passed else None)
    assert (found.precision.low is None) == (tau is None)
    assert found.best is not None
    assert (found.best >= precision) == (tau is not None)


def test_conversations_of_one_entropy_pass_together_and_ties_are_never_fitted_to() -> None:
    """Of three at the same entropy two are right: not the first two alone may pass."""
    de, truth = np.full(3, log(2) / 2), np.array([0, 0, 1])
    assert fitted_tau(de, np.zeros(3, dtype=np.int64), truth, 1.0).tau is None
    tied = np.array([0, 0, TIE])
    assert fitted_tau(de, tied, truth, 1.0).passed == 2
    assert fitted_tau(de, np.zeros(3, dtype=np.int64), truth, 1.0).best == 2 / 3
    nothing = fitted_tau(np.full(3, np.nan), np.full(3, TIE), truth, 0.5)
    assert (nothing.tau, nothing.best) == (None, None)


def test_each_fold_is_cut_at_the_tau_of_the_others_as_counted_by_hand() -> None:
    """Fold 0 goes by 0.6, to which fold 1 is right: 5 of its 6 pass. Fold 1 goes by 0, since fold 0 errs above it."""
    de = np.array([0.0, 0.0, 0.6, 0.6, 0.6, 0.7, 0.0, 0.0, 0.0, 0.6, 0.6, 0.6])
    truth = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    folds, picked = np.repeat([0, 1], 6), np.zeros(12, dtype=np.int64)
    found = crossfitted(de, picked, truth, 0.9, folds)
    assert (found.passed, found.left) == (TauSide(5 + 3, 3 + 3, 0), TauSide(1 + 3, 1 + 3, 0))
    assert found.passed.precision.value == 6 / 8
    assert ends_of(found.passed.precision) == pytest.approx(share_interval(6, 8))
    assert fitted_tau(de, picked, truth, 0.9).precision.value == 1.0  # on what it was fitted to it looks better


def test_conversations_that_go_together_count_as_one_in_intervals() -> None:
    de, truth = np.array([0.0, 0.0, 0.0, 0.0, 0.6, 0.6, 0.6, 0.6]), np.array([0, 0, 0, 1, 0, 1, 0, 1])
    folds, picked = np.array([0, 0, 1, 1] * 2), np.zeros(8, dtype=np.int64)
    alone = crossfitted(de, picked, truth, 0.5, folds)
    paired = crossfitted(de, picked, truth, 0.5, folds, np.array([0, 0, 1, 1, 2, 2, 2, 2]))
    assert (paired.passed.n, paired.passed.right) == (alone.passed.n, alone.passed.right) == (8, 5)
    assert (paired.passed.units, paired.units) == (3, 3)
    assert ends_of(paired.passed.precision) == pytest.approx(share_interval(5 * 3 / 8, 3))
    fitted = fitted_tau(de, picked, truth, 0.7, np.array([0, 0, 1, 1, 2, 2, 2, 2]))
    assert (fitted.passed, fitted.right, fitted.units) == (4, 3, 2)
    assert ends_of(fitted.precision) == pytest.approx(share_interval(3 * 2 / 4, 2))
    assert ends_of(paired.coverage) == share_interval(3, 3)
    assert (alone.passed.units, ends_of(alone.coverage)) == (None, share_interval(8, 8))


def test_a_fold_passes_nothing_where_the_others_reach_no_precision() -> None:
    de, picked, truth = np.zeros(4), np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1])
    found = crossfitted(de, picked, truth, 0.9, np.array([0, 0, 1, 1]))
    assert (found.passed, found.coverage.value) == (TauSide(2, 0, 0), 0.5)  # fold 1 goes by fold 0, which is right


def test_what_cross_fitting_tells_is_what_new_conversations_bring() -> None:
    """Runs of a judge that is right with a chance drawn for each conversation, fitted on 200 and used on 20,000."""
    rng = np.random.default_rng(5)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        truth = rng.integers(2, size=n)
        chance = np.where(rng.random(n) < 0.9, rng.uniform(0.7, 1.0, n), rng.uniform(0.0, 0.6, n))
        right = rng.binomial(7, chance)
        votes = np.where(truth[:, None] == [0, 1], right[:, None], 7 - right[:, None])
        return entropies(votes), modes(votes), truth

    gaps = []
    for _ in range(40):
        known, new = drawn(200), drawn(20_000)
        tau = fitted_tau(*known, 0.85).tau
        told = crossfitted(*known, 0.85, np.arange(200) % 10).passed.precision.value
        kept = None if tau is None else filtered(*new, tau).passed.precision.value
        gaps += [] if told is None or kept is None else [told - kept]
    assert len(gaps) == 40
    assert abs(np.mean(gaps)) < 0.02
