"""The cumulative link, what is filled in where answers are missing, and the estimator on both."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

from pollex.calibration.cumulative_link import (
    SEARCH,
    LinkTerms,
    _Task,
    alike,
    distribution,
    learned,
    unlearned,
)
from pollex.calibration.features import Gaussian, inputs_of
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats

THUMB = Questionnaire(
    (Scale("clear", (0.0, 1.0)), Scale("kind", (0.0, 1.0)), Scale("thumb", (0.0, 1.0), asked=False)), main="thumb"
)
RATING = Questionnaire((Scale("overall", (1.0, 2.0, 3.0)), Scale("clear", (1.0, 2.0, 3.0))), main="overall")


def terms(judges: int = 2, inputs: int = 2) -> LinkTerms:
    """Cuts −1 and 1, slopes 1 and 0.5, and judges that differ in everything."""
    rng = np.random.default_rng(0)
    return LinkTerms(
        start=np.array([-1.0]),
        gaps=np.log([2.0]),
        slopes=np.array([1.0, 0.5])[:inputs],
        intercepts=rng.normal(size=judges),
        scales=rng.normal(size=judges) / 3,
        judge_slopes=rng.normal(size=(judges, inputs)) / 3,
    )


def test_a_main_question_without_order_is_refused() -> None:
    classes = Questionnaire((Scale("kind", (0.0, 1.0, 2.0), ordinal=False),), main="kind")
    with pytest.raises(WrongUse, match="not ordinal"):
        OrdinalMixedEffects().fit(np.full((4, 3), 1 / 3), [0, 1, 2, 1], questions=classes)


def test_a_question_that_was_not_learned_is_not_predicted() -> None:
    X = np.full((4, 6), 1 / 3)
    model = OrdinalMixedEffects().fit(X, [1, 2, 3, 2], questions=RATING)
    with pytest.raises(WrongUse, match="'clear' was not learned"):
        model.predict(X, question="clear")


def test_the_distribution_is_the_formula_worked_by_hand() -> None:
    found = LinkTerms(
        np.array([-1.0]), np.log([2.0]), np.array([1.0]), np.array([0.5]), np.log([2.0]), np.array([[0.25]])
    )
    # place = 0.4·1 + 0.5 + 0.4·0.25 = 1; P(≤1) = σ(2·(−1 − 1)), P(≤2) = σ(2·(1 − 1))
    known = distribution(found, np.array([[0.4]]), np.array([0]))
    np.testing.assert_allclose(known, [[expit(-4), 0.5 - expit(-4), 0.5]], rtol=1e-9)
    # nobody known: place 0.4, scale 1
    nobody = distribution(found, np.array([[0.4]]), np.array([-1]))
    np.testing.assert_allclose(nobody, [[expit(-1.4), expit(0.6) - expit(-1.4), 1 - expit(0.6)]], rtol=1e-9)


def test_what_is_not_known_for_sure_flattens_the_curve_as_the_average_over_it_does() -> None:
    found = unlearned(np.array([0.3, 0.7]), inputs=1, judges=0)
    flat = distribution(found, np.zeros((1, 1)), np.array([-1]), spread=np.array([1.5]))
    draws = np.random.default_rng(0).normal(0, np.sqrt(1.5), 400_000)
    averaged = expit(found.cuts[0] - draws).mean()
    assert flat[0, 0] == pytest.approx(averaged, abs=0.005)
    assert abs(flat[0, 0] - 0.5) < abs(0.3 - 0.5)


@pytest.mark.parametrize("place", range(12))
def test_the_gradient_is_that_of_differences(place: int) -> None:
    rng = np.random.default_rng(1)
    shape = terms()
    answers = np.array([0, 1, 2, 2, 1, 0, 0, 2])
    judges = np.array([0, 1, 0, 1, -1, 0, 1, -1])
    task = _Task(rng.normal(size=(8, 2)), judges, answers, rng.uniform(0.5, 2, 8), shape)
    middle = shape.packed()
    assert len(middle) == 12
    step = np.zeros(12)
    step[place] = 1e-5
    slope = (task.loss(middle + step)[0] - task.loss(middle - step)[0]) / 2e-5
    assert task.loss(middle)[1][place] == pytest.approx(slope, abs=1e-7)


def test_the_loss_is_the_likelihood_of_the_distribution() -> None:
    F, judges, answers = np.array([[0.1, 2.0], [-3.0, 1.0]]), np.array([0, -1]), np.array([2, 0])
    proba = distribution(terms(), F, judges)
    loss, _ = _Task(F, judges, answers, np.array([1.0, 3.0]), terms()).loss(terms().packed())
    assert loss == pytest.approx(-np.log(proba[0, 2]) - 3 * np.log(proba[1, 0]), rel=1e-9)


def test_with_two_options_it_is_scikit_learns_logistic_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    F = rng.normal(size=(80, 3))
    answers = (F @ [1.0, -0.5, 0] + rng.logistic(size=80) > 0.3).astype(np.int64)
    for name, value in {"ftol": 1e-16, "gtol": 1e-9}.items():
        monkeypatch.setitem(SEARCH, name, value)
    center = unlearned(np.array([0.5, 0.5]), inputs=3, judges=0)
    found = learned(F, np.full(80, -1), answers, center, alike(center, (0.0, 0.0, 2.0, None, None, None)))
    theirs = LogisticRegression(C=0.5, tol=1e-12, max_iter=1000).fit(F, answers)
    np.testing.assert_allclose(found.slopes, theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(-found.start, theirs.intercept_, atol=1e-6)


def test_a_prior_of_infinite_precision_leaves_a_term_out() -> None:
    rng = np.random.default_rng(3)
    center = unlearned(np.full(3, 1 / 3), inputs=2, judges=2)
    precision = alike(center, (0.1, 0.1, 1.0, 1.0, None, None))
    found = learned(rng.normal(size=(40, 2)), np.arange(40) % 2, rng.integers(0, 3, 40), center, precision)
    assert not found.scales.any()
    assert not found.judge_slopes.any()
    assert found.intercepts.any()


def test_gaps_are_filled_with_the_conditional_mean_worked_by_hand() -> None:
    found = Gaussian(np.array([1.0, 2.0]), np.array([[4.0, 1.0], [1.0, 2.0]]))
    full = found.filled(np.array([[3.0, np.nan], [np.nan, np.nan], [5.0, 6.0]]))
    # 2 + 1/4·(3 − 1), variance 2 − 1/4
    np.testing.assert_allclose(full.rows, [[3, 2.5], [1, 2], [5, 6]])
    np.testing.assert_allclose(full.variance(np.array([[7.0, 2.0], [1.0, 1.0], [1.0, 1.0]])), [4 * 1.75, 8, 0])


def test_no_other_gaussian_makes_rows_with_gaps_likelier() -> None:
    rng = np.random.default_rng(4)
    rows = rng.multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], 200)
    rows[:80, 1] = np.nan

    def likelihood(mean: Floats, covariance: Floats) -> float:
        both = multivariate_normal(mean, covariance).logpdf(rows[80:]).sum()
        return float(both + multivariate_normal(mean[0], covariance[0, 0]).logpdf(rows[:80, 0]).sum())

    found = Gaussian.learned(rows, shrinkage=0)
    best = likelihood(found.mean, found.covariance)
    for place in range(2):
        for step in (-0.02, 0.02):
            moved = found.mean + step * np.eye(2)[place]
            assert likelihood(moved, found.covariance) < best
    for step in (-0.02, 0.02):
        assert likelihood(found.mean, found.covariance + step * (1 - np.eye(2))) < best


def test_what_does_not_apply_is_no_gap_but_has_an_indicator() -> None:
    X = np.array([[0.2, 0.8, 0.5, 0.5], [0.7, 0.3, 0.0, 0.0], [0.4, 0.6, 0.1, 0.9], [0.1, 0.9, 0.9, 0.1]])
    inputs = inputs_of(X, THUMB)
    assert inputs.names() == ("clear", "kind", "kind")
    full = inputs.of(X)
    assert full.rows[1, 1] == 0
    assert full.rows[1, 2] > 0 > full.rows[0, 2]
    assert not full.unsure.any()


def test_mass_enters_where_it_varies() -> None:
    X = np.array([[0.2, 0.8, 0.5, 0.5], [0.3, 0.3, 0.4, 0.6], [0.4, 0.4, 0.1, 0.9]])
    assert inputs_of(X, THUMB).names() == ("clear", "kind", "clear")


def test_a_question_without_order_enters_by_its_options() -> None:
    questions = Questionnaire((Scale("kind", (0.0, 1.0, 2.0), ordinal=False), Scale("thumb", (0.0, 1.0))), "thumb")
    X = np.array([[0.2, 0.3, 0.5, 0.4, 0.6], [0.5, 0.4, 0.1, 0.2, 0.8]])
    np.testing.assert_allclose(inputs_of(X, questions).mean, [0.35, 0.35, 0.3, 0.7])


@pytest.mark.parametrize("slopes", [None, 10.0])
def test_in_which_order_classes_stand_changes_nothing(slopes: float | None) -> None:
    rng = np.random.default_rng(4)
    X, turned = rng.dirichlet(np.ones(3), 200), [2, 0, 1]
    y = 1.0 + (X[:, 0] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=200) > 0.5)
    judges = ["a", "b"] * 100
    rating = Scale("rating", (1.0, 2.0), asked=False)
    in_order = Questionnaire((Scale("kind", (0.0, 1.0, 2.0), ordinal=False), rating), "rating")
    model = OrdinalMixedEffects(slopes=slopes).fit(X, y, judges, in_order)
    other = OrdinalMixedEffects(slopes=slopes).fit(X[:, turned], y, judges, in_order)
    found = model.predict_proba(X, judges)
    assert np.ptp(found[:, 1]) > 0.2
    np.testing.assert_allclose(found, other.predict_proba(X[:, turned], judges), atol=2e-4)


def ratings(rows: int = 600, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    """Judges a and b rate what is clear; b a whole point lower."""
    rng = np.random.default_rng(seed)
    clear = rng.uniform(0, 1, rows)
    block = np.stack([1 - clear, np.zeros(rows), clear], axis=1)
    judges = ["a", "b"] * (rows // 2)
    severe = np.array([0.0, 2.0] * (rows // 2))
    place = 4 * (clear - 0.5) - severe + rng.logistic(size=rows)
    return np.concatenate([np.full((rows, 3), 1 / 3), block], axis=1), 1.0 + (place > -1) + (place > 1), judges


def test_a_gap_costs_certainty_but_no_bias() -> None:
    X, y, judges = ratings()
    model = OrdinalMixedEffects().fit(X, y, judges, RATING)
    blind = X.copy()
    blind[:, 3:] = np.nan
    assert model.predict(blind).mean() == pytest.approx(model.predict(X).mean(), abs=0.03)
    assert model.predict(blind).std() < model.predict(X).std() / 10


def test_forty_labels_of_pure_noise_leave_it_close_to_the_shares() -> None:
    rng = np.random.default_rng(5)
    X = rng.dirichlet(np.ones(3), (40, 2)).reshape(40, 6)
    y = rng.integers(1, 4, 40).astype(float)
    proba = OrdinalMixedEffects().fit(X, y, [str(row % 8) for row in range(40)], RATING).predict_proba(X)
    shares = np.bincount(y.astype(int), minlength=4)[1:] / 40
    assert np.abs(proba - shares).max() < 0.25


def test_more_shrinkage_brings_all_texts_closer_together() -> None:
    X, y, judges = ratings(100)
    spreads = [OrdinalMixedEffects(shared=s).fit(X, y, judges, RATING).predict(X).std() for s in (1, 30, 1000)]
    assert spreads[0] > spreads[1] > spreads[2]


def test_thousands_of_users_with_one_thumb_each_take_no_square_of_memory() -> None:
    users = 4000
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((users, 2)) / 2, 2, axis=1)
    y = (rng.random(users) < 0.5).astype(float)
    tracemalloc.start()
    try:
        OrdinalMixedEffects(scales=None, slopes=None).fit(X, y, range(users), THUMB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < users**2 * 8 / 4
