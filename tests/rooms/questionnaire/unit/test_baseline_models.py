"""The baselines, each against its formula or the library that it comes from."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import Ridge

from pollex.calibration.models.constant import Constant
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.models.weighted_sum import WeightedSum
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats
from pollex.rooms.questionnaire.calibration.models.argmax import Argmax
from pollex.rooms.questionnaire.calibration.models.as_is import AsIs
from pollex.rooms.questionnaire.calibration.models.isotonic import IsotonicByJudge
from pollex.rooms.questionnaire.calibration.models.judge_mean import JudgeMean
from pollex.rooms.questionnaire.calibration.models.main_alone import MainAlone
from pollex.rooms.questionnaire.calibration.models.ridge import (
    RidgeWithJudge,
    integrate_normal_between,
)

GRADES = (1.0, 2.0, 3.0)
THREE = Questionnaire((Scale("overall", GRADES), Scale("clear", GRADES)), main="overall")
THIRDS = np.full((4, 6), 1 / 3)


def world(rows: int = 90, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(3), (rows, 2)).reshape(rows, 6)
    wanted = X[:, :3] @ GRADES + rng.normal(0, 0.6, rows)
    return X, np.clip(np.round(wanted), 1, 3), [("a", "b", "c")[row % 3] for row in range(rows)]


NOT_ASKED = (Scale("thumb", (0.0, 1.0), asked=False), "was not asked 'thumb'")
NOT_ORDERED = (Scale("kind", GRADES, ordinal=False), "'kind' is not ordinal")


@pytest.mark.parametrize(
    ("model", "main", "message"),
    [
        *((model, *NOT_ASKED) for model in (AsIs(), Argmax(), IsotonicByJudge(), MainAlone())),
        *(
            (kind(), *NOT_ORDERED)
            for kind in (RidgeWithJudge, IsotonicByJudge, OrdinalMixedEffects, WeightedSum)
        ),
    ],
)
def test_what_needs_an_answer_to_the_main_question_or_an_order_is_refused_without(
    model: Any, main: Scale, message: str
) -> None:
    asked = Questionnaire((Scale("clear", GRADES), main), main.question)
    with pytest.raises(WrongUse, match=message):
        model.fit(
            np.full((4, asked.width), 1 / 3), np.array(main.values)[[0, 1, 1, 0]], questions=asked
        )


def test_a_constant_is_the_smoothed_shares_and_a_judges_shares_are_drawn_to_everybodys() -> None:
    constant = Constant(smoothing=3).fit(np.full((5, 6), 1 / 3), [1, 1, 1, 2, 2], questions=THREE)
    np.testing.assert_allclose(constant.predict_proba(THIRDS[:1]), [[4 / 8, 3 / 8, 1 / 8]])
    model = JudgeMean(strength=2, smoothing=0).fit(
        THIRDS, [1, 1, 3, 3], ["a", "a", "b", "b"], THREE
    )
    # everybody: ½, 0, ½; a: (2 + 2·½) / 4
    np.testing.assert_allclose(
        model.predict_proba(THIRDS, ["a", "b", "c", None])[:, 0], [3 / 4, 1 / 4, 1 / 2, 1 / 2]
    )
    free = JudgeMean(strength=0, smoothing=0).fit(
        THIRDS, [1, 3, 3, 3], ["ann", "ann", "bob", "bob"], THREE
    )
    np.testing.assert_allclose(
        free.predict_proba(THIRDS[:3], ["ann", "bob", None])[:, 0], [0.5, 0, 0.25]
    )


def test_the_answer_as_it_is_is_normalized_by_its_mass_and_the_most_probable_one_has_all_of_it() -> (
    None
):
    X = np.array([[0.1, 0.2, 0.3, 0, 0, 1], [0, 0, 0, 0, 0, 1], [np.nan] * 3 + [0, 0, 1]])
    model = AsIs().fit(X, [1, 2, 3], questions=THREE)
    np.testing.assert_allclose(
        model.predict_proba(X), [[1 / 6, 1 / 3, 1 / 2], [1 / 3] * 3, [1 / 3] * 3]
    )
    np.testing.assert_allclose(model.predict(X, question="clear"), 3)
    proba = Argmax().fit(X, [1, 2, 3], questions=THREE).predict_proba(X[:2])
    np.testing.assert_allclose(proba, [[0, 0, 1], [1 / 3] * 3])


def test_without_smoothing_each_judge_has_scikit_learns_isotonic_regression_and_else_it_rises_with_the_score() -> (
    None
):
    X, y, judges = world()
    new, _, who = world(seed=1)
    proba = (
        IsotonicByJudge(strength=0, smoothing=0).fit(X, y, judges, THREE).predict_proba(new, who)
    )
    scores = X[:, :3] @ GRADES
    for judge in "abc":
        own = np.array(judges) == judge
        asked = np.array(who) == judge
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores[own], (y > 1)[own])
        expected = theirs.predict(new[asked, :3] @ GRADES)
        np.testing.assert_allclose(proba[asked][:, 1:].sum(axis=1), expected, atol=1e-9)
    model = IsotonicByJudge().fit(X, y, judges, THREE)
    for somebody in ("a", "b", "c", None):
        assert (np.diff(model.predict(X, [somebody] * 90)[np.argsort(scores)]) >= -1e-12).all()


def test_ridge_is_scikit_learns_with_inputs_that_carry_the_penalties() -> None:
    X, y, judges = world()
    model = RidgeWithJudge(shared=3.0, judges=5.0).fit(X, y, judges, THREE)
    expected = np.stack([X[:, :3] @ GRADES, X[:, 3:] @ GRADES], axis=1)
    standard = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    who = np.array([[judge == name for name in "abc"] for judge in judges]) / np.sqrt(5)
    theirs = Ridge(alpha=1.0, tol=1e-12).fit(
        np.concatenate([standard / np.sqrt(3), who], axis=1), y
    )
    mine = model.weights_ * np.array([1, *[np.sqrt(3)] * 2, *[np.sqrt(5)] * 3])
    np.testing.assert_allclose(mine, [theirs.intercept_, *theirs.coef_], atol=1e-9)


def test_a_cut_normal_is_the_normals_mass_between_midpoints() -> None:
    proba = integrate_normal_between(np.array([1.2]), 0.8, np.array([1.5, 2.5]))
    below = norm(1.2, 0.8).cdf([1.5, 2.5])
    np.testing.assert_allclose(proba, [[below[0], below[1] - below[0], 1 - below[1]]], atol=1e-9)


def test_left_out_residuals_of_the_ridge_are_those_of_regressions_that_left_them_out() -> None:
    """Only the deviation depends on them: it is that of the 30 regressions fitted one by one."""
    X, y, judges = world(30)
    fitted = RidgeWithJudge().fit(X, y, judges, THREE)
    design = fitted._design(
        fitted.inputs_.of(X).rows, np.array([("a", "b", "c").index(j) for j in judges])
    )
    penalty = np.diag(fitted._penalty(5.0, 30.0))
    left = []
    for row in range(30):
        rest = np.arange(30) != row
        weights = np.linalg.solve(design[rest].T @ design[rest] + penalty, design[rest].T @ y[rest])
        left.append(design[row] @ weights)

    def loss(deviation: float) -> float:
        proba = integrate_normal_between(np.array(left), deviation, np.array([1.5, 2.5]))
        return float(-np.log(proba[np.arange(30), y.astype(int) - 1]).sum())

    found = float(fitted.deviation_[0])
    assert loss(found) < min(loss(found * 1.02), loss(found / 1.02))


def test_the_main_question_alone_looks_at_no_other() -> None:
    X, y, judges = world()
    other = X.copy()
    other[:, 3:] = np.roll(X[:, 3:], 1, axis=0)
    model = MainAlone().fit(X, y, judges, THREE)
    np.testing.assert_array_equal(model.predict(X), model.predict(other))
    alone = Questionnaire((THREE.scale(),), "overall")
    plain = OrdinalMixedEffects(shared=1.0, intercepts=None, scales=None, slopes=None)
    np.testing.assert_allclose(
        plain.fit(X[:, :3], y, judges, alone).predict(X[:, :3]), model.predict(X), atol=1e-6
    )
