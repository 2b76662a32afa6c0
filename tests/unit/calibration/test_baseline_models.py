"""The baselines, each against its formula or the library that it comes from."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import Ridge

from pollex.calibration.models.baselines import Argmax, AsIs, Constant, JudgeMean, MainAlone
from pollex.calibration.models.isotonic import IsotonicByJudge
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.models.ridge import RidgeWithJudge, cut_normal
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats

THREE = Questionnaire((Scale("overall", (1.0, 2.0, 3.0)), Scale("clear", (1.0, 2.0, 3.0))), main="overall")
THUMB = Questionnaire((Scale("clear", (1.0, 2.0, 3.0)), Scale("thumb", (0.0, 1.0), asked=False)), main="thumb")


def world(rows: int = 90, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(3), (rows, 2)).reshape(rows, 6)
    wanted = X[:, :3] @ [1, 2, 3] + rng.normal(0, 0.6, rows)
    return X, np.clip(np.round(wanted), 1, 3), [("a", "b", "c")[row % 3] for row in range(rows)]


@pytest.mark.parametrize("model", [AsIs(), Argmax(), IsotonicByJudge(), MainAlone()])
def test_without_an_answer_to_the_main_question_there_is_none_to_take(model: AsIs) -> None:
    with pytest.raises(WrongUse, match="was not asked 'thumb'"):
        model.fit(np.full((4, 3), 1 / 3), [0, 1, 1, 0], questions=THUMB)


@pytest.mark.parametrize("model", [RidgeWithJudge(), IsotonicByJudge()])
def test_classes_have_no_mean_and_no_order(model: RidgeWithJudge) -> None:
    classes = Questionnaire((Scale("kind", (0.0, 1.0, 2.0), ordinal=False),), main="kind")
    with pytest.raises(WrongUse, match="not ordinal"):
        model.fit(np.full((4, 3), 1 / 3), [0, 1, 2, 1], questions=classes)


@pytest.mark.parametrize("model", [RidgeWithJudge(), IsotonicByJudge(), Constant(), JudgeMean()])
def test_another_question_than_was_learned_is_refused(model: Constant) -> None:
    X, y, judges = world()
    with pytest.raises(WrongUse, match="'clear'"):
        model.fit(X, y, judges, THREE).predict(X, question="clear")


def test_a_constant_is_the_smoothed_shares() -> None:
    model = Constant(smoothing=3).fit(np.full((5, 6), 1 / 3), [1, 1, 1, 2, 2], questions=THREE)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 6), 1 / 3)), [[4 / 8, 3 / 8, 1 / 8]])


def test_a_judges_shares_are_drawn_to_everybodys() -> None:
    X = np.full((4, 6), 1 / 3)
    model = JudgeMean(strength=2, smoothing=0).fit(X, [1, 1, 3, 3], ["a", "a", "b", "b"], THREE)
    # everybody: ½, 0, ½; a: (2 + 2·½) / 4
    np.testing.assert_allclose(model.predict_proba(X, ["a", "b", "c", None]), [
        [3 / 4, 0, 1 / 4], [1 / 4, 0, 3 / 4], [1 / 2, 0, 1 / 2], [1 / 2, 0, 1 / 2]
    ])  # fmt: skip


def test_a_judge_without_answers_has_everybodys_shares_even_where_nothing_is_drawn_to_them() -> None:
    model = JudgeMean(strength=0, smoothing=0).fit(np.full((4, 2), 0.5), [0, 1, 1, 1], ["ann", "ann", "bob", "bob"])
    assert model.predict_proba(np.full((3, 2), 0.5), ["ann", "bob", None]).tolist() == [
        [0.5, 0.5],
        [0, 1],
        [0.25, 0.75],
    ]


def test_the_answer_as_it_is_is_normalized_by_its_mass() -> None:
    X = np.array([[0.1, 0.1, 0.3, 0, 0, 1], [0, 0, 0, 0, 0, 1], [np.nan] * 3 + [0, 0, 1]])
    model = AsIs().fit(X, [1, 2, 3], questions=THREE)
    np.testing.assert_allclose(model.predict_proba(X), [[0.2, 0.2, 0.6], [1 / 3] * 3, [1 / 3] * 3])
    np.testing.assert_allclose(model.predict(X, question="clear"), 3)


def test_the_most_probable_answer_has_all_of_the_probability() -> None:
    X = np.array([[0.1, 0.4, 0.3, 0, 0, 1], [0, 0, 0, 0, 0, 1]])
    proba = Argmax().fit(X, [1, 2], questions=THREE).predict_proba(X)
    np.testing.assert_allclose(proba, [[0, 1, 0], [1 / 3] * 3])


def test_without_smoothing_each_judge_has_scikit_learns_isotonic_regression() -> None:
    X, y, judges = world()
    model = IsotonicByJudge(strength=0, smoothing=0).fit(X, y, judges, THREE)
    new, _, who = world(seed=1)
    proba = model.predict_proba(new, who)
    scores = X[:, :3] @ [1, 2, 3]
    for judge in "abc":
        own, asked = np.array(judges) == judge, np.array(who) == judge
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores[own], (y > 1)[own])
        expected = theirs.predict(new[asked, :3] @ [1, 2, 3])
        np.testing.assert_allclose(proba[asked][:, 1:].sum(axis=1), expected, atol=1e-9)


def test_the_isotonic_prediction_rises_with_the_score_for_everybody() -> None:
    X, y, judges = world()
    model = IsotonicByJudge().fit(X, y, judges, THREE)
    order = np.argsort(X[:, :3] @ [1, 2, 3])
    for who in ("a", "b", "c", None):
        assert (np.diff(model.predict(X, [who] * 90)[order]) >= -1e-12).all()


def test_ridge_is_scikit_learns_with_inputs_that_carry_the_penalties() -> None:
    X, y, judges = world()
    model = RidgeWithJudge(shared=3.0, judges=5.0).fit(X, y, judges, THREE)
    expected = np.stack([X[:, :3] @ [1, 2, 3], X[:, 3:] @ [1, 2, 3]], axis=1)
    standard = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    who = np.array([[judge == name for name in "abc"] for judge in judges]) / np.sqrt(5)
    theirs = Ridge(alpha=1.0, tol=1e-12).fit(np.concatenate([standard / np.sqrt(3), who], axis=1), y)
    mine = model.weights_ * np.array([1, *[np.sqrt(3)] * 2, *[np.sqrt(5)] * 3])
    np.testing.assert_allclose(mine, [theirs.intercept_, *theirs.coef_], atol=1e-9)


def test_a_cut_normal_is_the_normals_mass_between_midpoints() -> None:
    proba = cut_normal(np.array([1.2]), 0.8, np.array([1.5, 2.5]))
    below = norm(1.2, 0.8).cdf([1.5, 2.5])
    np.testing.assert_allclose(proba, [[below[0], below[1] - below[0], 1 - below[1]]], atol=1e-9)


def test_left_out_residuals_of_the_ridge_are_those_of_regressions_that_left_them_out() -> None:
    """Only the deviation depends on them: it is that of the 90 regressions fitted one by one."""
    X, y, judges = world(30)
    fitted = RidgeWithJudge().fit(X, y, judges, THREE)
    design = fitted._design(fitted.inputs_.of(X).rows, np.array([("a", "b", "c").index(j) for j in judges]))
    penalty = np.diag(fitted._penalty(5.0, 30.0))
    left = []
    for row in range(30):
        rest = np.arange(30) != row
        weights = np.linalg.solve(design[rest].T @ design[rest] + penalty, design[rest].T @ y[rest])
        left.append(design[row] @ weights)
    answers = y.astype(int) - 1

    def loss(deviation: float) -> float:
        proba = cut_normal(np.array(left), deviation, np.array([1.5, 2.5]))
        return float(-np.log(proba[np.arange(30), answers]).sum())

    found = float(fitted.deviation_[0])
    assert loss(found) < loss(found * 1.02)
    assert loss(found) < loss(found / 1.02)


def test_the_main_question_alone_looks_at_no_other() -> None:
    X, y, judges = world()
    other = X.copy()
    other[:, 3:] = np.roll(X[:, 3:], 1, axis=0)
    model = MainAlone().fit(X, y, judges, THREE)
    np.testing.assert_array_equal(model.predict(X), model.predict(other))
    alone = Questionnaire((THREE.scale(),), "overall")
    plain = OrdinalMixedEffects(shared=1.0, intercepts=None, scales=None, slopes=None)
    np.testing.assert_allclose(plain.fit(X[:, :3], y, judges, alone).predict(X[:, :3]), model.predict(X), atol=1e-6)
