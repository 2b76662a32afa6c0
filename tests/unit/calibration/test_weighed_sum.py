"""The weighted sum: weights and targets by hand, NetSAT as its special case."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pollex.calibration.models.weighted_sum import (
    SLOPE_PRIOR_PRECISION,
    WeightedSum,
    compute_question_weights,
)
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats
from pollex.measures.distributions import compute_platt_targets

THUMBS = Questionnaire(
    (Scale("a", (0.0, 10.0)), Scale("b", (0.0, 10.0)), Scale("thumb", (0.0, 1.0), asked=False)),
    "thumb",
)


def rows(p: Floats) -> Floats:
    """X from the probabilities of the second option of both questions."""
    return np.stack([1 - p[:, 0], p[:, 0], 1 - p[:, 1], p[:, 1]], axis=1)


def drawn(n: int = 60) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    p = rng.random((n, 2))
    return rows(p), (rng.random(n) < 1 / (1 + np.exp(-6 * (p[:, 0] - p[:, 1])))).astype(np.float64)


def test_signs_that_are_not_one_a_question_are_refused() -> None:
    X, up = drawn()
    with pytest.raises(WrongUse, match="1 signs for 2 questions"):
        WeightedSum((1.0,)).fit(X, up, questions=THUMBS)


def test_two_questions_that_say_the_same_share_their_weight() -> None:
    one = np.array([1.0, 1, -1, -1])
    other = np.array([1.0, -1, 1, -1])
    z = np.stack([one, one, other], axis=1)  # R = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    # With ρ = ½ the matrix is [[1, ½, 0], [½, 1, 0], [0, 0, 1]]: w₁ + w₂/2 = 1, so w₁ = w₂ = 2/3.
    assert compute_question_weights(z, np.ones(3), 0.5) == pytest.approx([2 / 3, 2 / 3, 1])
    assert compute_question_weights(z, np.array([2.0, 2.0, 1.0]), 1.0) == pytest.approx([2, 2, 1])


def test_full_independence_is_the_plain_signed_sum_with_the_penalized_slope_of_the_largest_likelihood() -> (
    None
):
    X, up = drawn()
    model = WeightedSum((1, -1), independence=1.0).fit(X, up, questions=THUMBS)
    score = THUMBS.expected(X) @ np.array([1.0, -1.0])
    score = (score - score.mean()) / score.std()
    targets = compute_platt_targets(up.astype(np.int64), 2)[:, 1]
    share = (up.sum() + 1) / (len(up) + 2)

    def loss(values: Floats) -> float:
        logits = values[0] * score - values[1]
        prior = (
            0.5 * SLOPE_PRIOR_PRECISION * values[0] ** 2
            + 0.005 * (values[1] - np.log((1 - share) / share)) ** 2
        )
        return float(np.sum(np.logaddexp(0, logits) - targets * logits) + prior)

    found = minimize(loss, [1.0, 0.0], tol=1e-12).x
    expected = 1 / (1 + np.exp(found[1] - found[0] * score))
    assert model.predict_proba(X)[:, 1] == pytest.approx(expected, abs=1e-4)


def test_targets_are_those_of_platt() -> None:
    targets = compute_platt_targets(np.array([1, 1, 1, 0]), 2)
    assert targets == pytest.approx(np.array([[1 / 5, 4 / 5]] * 3 + [[2 / 3, 1 / 3]]))


def test_classes_that_do_not_overlap_and_answers_that_are_all_alike_leave_probabilities_between_0_and_1() -> (
    None
):
    X = rows(np.repeat([[0.1, 0.9], [0.9, 0.1]], 5, axis=0))
    p = WeightedSum((1, -1)).fit(X, [0.0] * 5 + [1.0] * 5, questions=THUMBS).predict_proba(X)[:, 1]
    assert 0.02 < p[0] < 0.4
    assert 0.6 < p[-1] < 0.98
    alike = np.full((8, 4), 0.5)
    p = (
        WeightedSum((1, -1))
        .fit(alike, [1.0] * 6 + [0.0] * 2, questions=THUMBS)
        .predict_proba(alike)[:, 1]
    )
    assert p == pytest.approx(np.full(8, 0.7), abs=0.02)  # (6 + 1) / (8 + 2)


def test_a_missing_answer_counts_as_its_questions_mean() -> None:
    X, up = drawn()
    model = WeightedSum((1, -1), deviations=10.0).fit(X, up, questions=THUMBS)
    usual = X[:1].copy()
    missing = X[:1].copy()
    usual[0, 2:], missing[0, 2:] = X[:, 2:].mean(axis=0), np.nan
    assert model.predict_proba(missing) == pytest.approx(model.predict_proba(usual))


def test_deviations_move_what_the_sum_gets_wrong_and_less_so_the_more_they_are_shrunk() -> None:
    # the second question speaks against; a sum with two plus signs is of no use
    X, up = drawn(200)
    blind, free, tight = (
        WeightedSum((1, 1), independence=1.0, deviations=deviations).fit(X, up, questions=THUMBS)
        for deviations in (None, 1.0, 1e6)
    )
    slopes = free.terms_.slopes[0] * free.weights_ + free.terms_.slopes[1:]
    assert slopes[0] > 0 > slopes[1]
    assert tight.predict_proba(X) == pytest.approx(blind.predict_proba(X), abs=1e-3)
