"""The cumulative link, and the estimator on it."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from pollex.calibration.cumulative_link import (
    LBFGS_OPTIONS,
    LinkTerms,
    _NegativeLogLikelihood,
    fit_cumulative_link_parameters,
    make_parameters_equal_for_judges,
    make_prior_precisions,
    predict_answer_distributions,
)
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats

THUMB = Questionnaire(
    (Scale("clear", (0.0, 1.0)), Scale("thumb", (0.0, 1.0), asked=False)), main="thumb"
)
RATING = Questionnaire(
    (Scale("overall", (1.0, 2.0, 3.0)), Scale("clear", (1.0, 2.0, 3.0))), main="overall"
)


def terms() -> LinkTerms:
    """Cuts −1 and 1, slopes 1 and 0.5, and two judges that differ in everything."""
    rng = np.random.default_rng(0)
    return LinkTerms(
        start=np.array([-1.0]),
        gaps=np.log([2.0]),
        slopes=np.array([1.0, 0.5]),
        intercepts=rng.normal(size=2),
        scales=rng.normal(size=2) / 3,
        judge_slopes=rng.normal(size=(2, 2)) / 3,
    )


def test_the_distribution_is_the_formula_worked_by_hand() -> None:
    found = LinkTerms(
        np.array([-1.0]),
        np.log([2.0]),
        np.array([1.0]),
        np.array([0.5]),
        np.log([2.0]),
        np.array([[0.25]]),
    )
    # place = 0.4·1 + 0.5 + 0.4·0.25 = 1; P(≤1) = σ(2·(−1 − 1)), P(≤2) = σ(2·(1 − 1))
    known = predict_answer_distributions(found, np.array([[0.4]]), np.array([0]))
    np.testing.assert_allclose(known, [[expit(-4), 0.5 - expit(-4), 0.5]], rtol=1e-9)
    # nobody known: place 0.4, scale 1
    nobody = predict_answer_distributions(found, np.array([[0.4]]), np.array([-1]))
    np.testing.assert_allclose(
        nobody, [[expit(-1.4), expit(0.6) - expit(-1.4), 1 - expit(0.6)]], rtol=1e-9
    )


def test_the_loss_is_the_likelihood_of_the_distribution_and_its_gradient_that_of_differences() -> (
    None
):
    F = np.array([[0.1, 2.0], [-3.0, 1.0]])
    judges = np.array([0, -1])
    answers = np.array([2, 0])
    middle = terms().packed()
    proba = predict_answer_distributions(terms(), F, judges)
    loss, _ = _NegativeLogLikelihood(F, judges, answers, np.array([1.0, 3.0]), terms()).loss(middle)
    assert loss == pytest.approx(-np.log(proba[0, 2]) - 3 * np.log(proba[1, 0]), rel=1e-9)
    rng = np.random.default_rng(1)
    answers = np.array([0, 1, 2, 2, 1, 0, 0, 2])
    judges = np.array([0, 1, 0, 1, -1, 0, 1, -1])
    task = _NegativeLogLikelihood(
        rng.normal(size=(8, 2)), judges, answers, rng.uniform(0.5, 2, 8), terms()
    )
    slopes = [
        (task.loss(middle + step)[0] - task.loss(middle - step)[0]) / 2e-5
        for step in 1e-5 * np.eye(12)
    ]
    assert task.loss(middle)[1] == pytest.approx(slopes, abs=1e-7)


def test_with_two_options_it_is_scikit_learns_logistic_regression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    F = rng.normal(size=(80, 3))
    answers = (F @ [1.0, -0.5, 0] + rng.logistic(size=80) > 0.3).astype(np.int64)
    for name, value in {"ftol": 1e-16, "gtol": 1e-9}.items():
        monkeypatch.setitem(LBFGS_OPTIONS, name, value)
    center = make_parameters_equal_for_judges(np.array([0.5, 0.5]), inputs=3, judges=0)
    found = fit_cumulative_link_parameters(
        F,
        np.full(80, -1),
        answers,
        center,
        make_prior_precisions(center, (0.0, 0.0, 2.0, None, None, None)),
    )
    theirs = LogisticRegression(C=0.5, tol=1e-12, max_iter=1000).fit(F, answers)
    np.testing.assert_allclose(found.slopes, theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(-found.start, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("slopes", [None, 10.0])
def test_in_which_order_classes_stand_changes_nothing(slopes: float | None) -> None:
    rng = np.random.default_rng(4)
    X = rng.dirichlet(np.ones(3), 200)
    turned = [2, 0, 1]
    y = 1.0 + (X[:, 0] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=200) > 0.5)
    judges = ["a", "b"] * 100
    rating = Scale("rating", (1.0, 2.0), asked=False)
    in_order = Questionnaire((Scale("kind", (0.0, 1.0, 2.0), ordinal=False), rating), "rating")
    model = OrdinalMixedEffects(slopes=slopes).fit(X, y, judges, in_order)
    other = OrdinalMixedEffects(slopes=slopes).fit(X[:, turned], y, judges, in_order)
    found = model.predict_proba(X, judges)
    assert np.ptp(found[:, 1]) > 0.2
    np.testing.assert_allclose(found, other.predict_proba(X[:, turned], judges), atol=2e-4)


def ratings(rows: int) -> tuple[Floats, Floats, list[str]]:
    """Judges a and b rate what is clear; b a whole point lower."""
    rng = np.random.default_rng(0)
    clear = rng.uniform(0, 1, rows)
    block = np.stack([1 - clear, np.zeros(rows), clear], axis=1)
    place = 4 * (clear - 0.5) - 2.0 * (np.arange(rows) % 2) + rng.logistic(size=rows)
    y = 1.0 + (place > -1) + (place > 1)
    return np.concatenate([np.full((rows, 3), 1 / 3), block], axis=1), y, ["a", "b"] * (rows // 2)


def test_a_gap_costs_certainty_but_no_bias() -> None:
    X, y, judges = ratings(600)
    model = OrdinalMixedEffects().fit(X, y, judges, RATING)
    blind = X.copy()
    blind[:, 3:] = np.nan
    assert model.predict(blind).mean() == pytest.approx(model.predict(X).mean(), abs=0.03)
    assert model.predict(blind).std() < model.predict(X).std() / 10


def test_thousands_of_users_with_one_thumb_each_take_no_square_of_memory() -> None:
    users = 4000
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        OrdinalMixedEffects(scales=None, slopes=None).fit(
            rng.random((users, 2)) / 2, (rng.random(users) < 0.5).astype(float), range(users), THUMB
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < users**2 * 8 / 4


def test_forty_labels_of_pure_noise_leave_it_close_to_the_shares() -> None:
    rng = np.random.default_rng(5)
    X = rng.dirichlet(np.ones(3), (40, 2)).reshape(40, 6)
    y = rng.integers(1, 4, 40).astype(float)
    proba = (
        OrdinalMixedEffects()
        .fit(X, y, [str(row % 8) for row in range(40)], RATING)
        .predict_proba(X)
    )
    shares = np.bincount(y.astype(int), minlength=4)[1:] / 40
    assert np.abs(proba - shares).max() < 0.25


def test_more_shrinkage_brings_all_texts_closer_together() -> None:
    X, y, judges = ratings(100)
    spreads = [
        OrdinalMixedEffects(shared=s).fit(X, y, judges, RATING).predict(X).std()
        for s in (1, 30, 1000)
    ]
    assert spreads[0] > spreads[1] > spreads[2]
