"""What is read off distributions: entropy, variance, mass, expected answer, and several judges' answers as one."""

from math import log, nan

import numpy as np
import pytest
from scipy import stats

from pollex.calibration.estimator import aggregated
from pollex.calibration.models.baselines import JudgeMean
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats
from pollex.measures.distributions import entropy, variance

QUESTIONS = Questionnaire((Scale("clear", (0.0, 10.0)), Scale("overall", (1.0, 2.0, 4.0))), "overall")


@pytest.mark.parametrize("how", ["median", "", 1.01, -0.1, nan])
def test_a_way_to_aggregate_that_there_is_not_is_refused(how: object) -> None:
    with pytest.raises(WrongUse, match="no way to aggregate"):
        aggregated(np.ones((2, 2)), how)  # type: ignore[arg-type]


def test_entropy_by_hand_and_as_scipy_has_it() -> None:
    found = entropy(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]]))
    assert found == pytest.approx([log(2), 0.0, 1.5 * log(2)])
    proba = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    np.testing.assert_allclose(entropy(proba), stats.entropy(proba, axis=1), rtol=1e-12)


def test_variance_by_hand() -> None:
    # mean .5·1 + .25·2 + .25·4 = 2; .5·1 + .25·0 + .25·4 = 1.5
    found = variance(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]), (1.0, 2.0, 4.0))
    assert found == pytest.approx([1.5, 0.0])


def test_mass_and_expected_answer_by_hand_and_missing_where_nothing_was_said() -> None:
    X = np.array([[0.1, 0.3, 0.2, 0.2, 0.1], [nan, nan, 0.0, 0.0, 0.0]])
    assert QUESTIONS.mass(X) == pytest.approx(np.array([[0.4, 0.5], [nan, 0.0]]), nan_ok=True)
    # (.3·10)/.4 and (.2·1 + .2·2 + .1·4)/.5
    assert QUESTIONS.expected(X) == pytest.approx(np.array([[7.5, 2.0], [nan, nan]]), nan_ok=True)
    assert QUESTIONS.present(X).tolist() == [[True, True], [False, True]]


def test_several_judges_answers_as_one_by_hand() -> None:
    values = np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 0.0]])
    assert aggregated(values, "mean") == pytest.approx([7 / 3, 2.0])
    assert aggregated(values, "max") == pytest.approx([4.0, 3.0])
    assert aggregated(values, 0.0) == pytest.approx([1.0, 0.0])
    assert aggregated(values, 0.5) == pytest.approx([2.0, 3.0])
    assert aggregated(values, 0.25) == pytest.approx([1.5, 1.5])


def severe_and_mild() -> tuple[JudgeMean, Floats]:
    X = np.full((4, 5), 0.2)
    y = [(row, "overall", judge, value) for row in range(4) for judge, value in (("mild", 4.0), ("severe", 1.0))]
    return JudgeMean().fit(X, y, questions=QUESTIONS), X


def test_trusted_judges_are_asked_and_no_others() -> None:
    model, X = severe_and_mild()
    severe, mild = model.predict(X, ["severe"] * 4), model.predict(X, ["mild"] * 4)
    assert (severe < mild).all()
    assert model.predict_for(X) == pytest.approx((severe + mild) / 2)
    assert model.predict_for(X, ["severe"]) == pytest.approx(severe)
    assert model.predict_for(X, aggregate="max") == pytest.approx(mild)
    assert model.predict_for(X, aggregate=0.1) == pytest.approx(0.9 * severe + 0.1 * mild)
    assert model.predict_each(X, ["mild", "stranger"])[:, 1] == pytest.approx(model.predict(X))
