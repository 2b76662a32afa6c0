"""What is read off distributions: entropy, variance, mass, expected answer, and several judges' answers as one."""

from math import log, nan

import numpy as np
import pytest
from scipy import stats

from pollex.calibration.estimator import combine_answer_values_of_judges
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.distributions import (
    compute_entropy_of_distributions,
    compute_variance_of_distributions,
)

QUESTIONS = Questionnaire(
    (Scale("clear", (0.0, 10.0)), Scale("overall", (1.0, 2.0, 4.0))), "overall"
)


def test_entropy_and_variance_by_hand_and_as_scipy_has_them() -> None:
    found = compute_entropy_of_distributions(
        np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
    )
    assert found == pytest.approx([log(2), 0.0, 1.5 * log(2)])
    proba = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    np.testing.assert_allclose(
        compute_entropy_of_distributions(proba), stats.entropy(proba, axis=1), rtol=1e-12
    )
    # mean .5·1 + .25·2 + .25·4 = 2; .5·1 + .25·0 + .25·4 = 1.5
    assert compute_variance_of_distributions(
        np.array([[0.5, 0.25, 0.25], [0, 1, 0]]), (1.0, 2.0, 4.0)
    ) == pytest.approx([1.5, 0.0])


def test_mass_and_expected_answer_by_hand_and_missing_where_nothing_was_said() -> None:
    X = np.array([[0.1, 0.3, 0.2, 0.2, 0.1], [nan, nan, 0.0, 0.0, 0.0]])
    assert QUESTIONS.mass(X) == pytest.approx(np.array([[0.4, 0.5], [nan, 0.0]]), nan_ok=True)
    # (.3·10)/.4 and (.2·1 + .2·2 + .1·4)/.5
    assert QUESTIONS.expected(X) == pytest.approx(np.array([[7.5, 2.0], [nan, nan]]), nan_ok=True)
    assert QUESTIONS.present(X).tolist() == [[True, True], [False, True]]


def test_several_judges_answers_as_one_by_hand_and_in_no_way_that_there_is_not() -> None:
    values = np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 0.0]])
    expected = (
        ("mean", [7 / 3, 2.0]),
        ("max", [4, 3]),
        (0.0, [1, 0]),
        (0.5, [2, 3]),
        (0.25, [1.5, 1.5]),
    )
    for how, one in expected:
        assert combine_answer_values_of_judges(values, how) == pytest.approx(one)  # type: ignore[arg-type]
    for odd in ("median", "", 1.01, -0.1, nan):
        with pytest.raises(WrongUse, match="no way to aggregate"):
            combine_answer_values_of_judges(values, odd)  # type: ignore[arg-type]


def test_trusted_judges_are_asked_and_no_others() -> None:
    X = np.full((4, 5), 0.2)
    y = [
        (row, "overall", judge, value)
        for row in range(4)
        for judge, value in (("mild", 4.0), ("severe", 1.0))
    ]
    model = OrdinalMixedEffects().fit(X, y, questions=QUESTIONS)
    severe = model.predict(X, ["severe"] * 4)
    mild = model.predict(X, ["mild"] * 4)
    assert (severe < mild).all()
    assert model.predict_for(X) == pytest.approx((severe + mild) / 2)
    assert model.predict_for(X, ["severe"]) == pytest.approx(severe)
    assert model.predict_for(X, aggregate="max") == pytest.approx(mild)
    assert model.predict_for(X, aggregate=0.1) == pytest.approx(0.9 * severe + 0.1 * mild)
    assert model.predict_each(X, ["mild", "stranger"])[:, 1] == pytest.approx(model.predict(X))
