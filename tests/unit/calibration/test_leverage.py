"""Leverage of each question on the main one: (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi)."""

import numpy as np
import pytest
from linear_stand_in import SHEET, Linear, certain, fitted

from pollex.calibration.leverage import asked_gradient, gradient, leverages, per_text
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats, Ints

MAIN = [0.1, 0.0, 0.2, 0.0, 0.1, 0.0, 0.3]
ROWS = np.array([certain(0.2, 0.7, 0.5), certain(1.0, 0.0, 0.9), certain(0.6, 0.6, 0.1)])


class Logistic(Linear):
    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        upper = 1 / (1 + np.exp(-super()._distribution(X, judges, question)[:, 1]))
        return np.stack([1 - upper, upper], axis=1)


def logistic() -> Logistic:
    judged = [(0, "main", None, 0.0), (1, "main", None, 1.0)]
    return Logistic({"main": MAIN}, [0.5] * 6, {}).fit(ROWS, judged, questions=SHEET)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("main", "other", "why"),
    [
        (Scale("main", (0.0, 1.0), ordinal=False), Scale("kind", (0.0, 1.0)), "nothing to raise"),
        (Scale("main", (0.0, 1.0)), Scale("kind", (0.0, 1.0), ordinal=False), "not ordered"),
        (Scale("main", (0.0, 1.0)), Scale("kind", (0.0, 1.0), asked=False), "it is not asked"),
    ],
)
def test_a_question_without_a_unit_to_gain_or_raise_has_a_reason_and_no_figure(
    rng: np.random.Generator, main: Scale, other: Scale, why: str
) -> None:
    sheet = Questionnaire((main, other), "main")
    (found,) = leverages(fitted({"main": [0.5] + [0.0] * sheet.width}, sheet), np.full((3, sheet.width), 0.5), rng)
    assert (found.mean, found.low) == (None, None)
    assert why in found.undefined


def test_a_question_that_no_text_answers_is_undefined_and_no_infinity(rng: np.random.Generator) -> None:
    rows = np.array([certain(np.nan, 0.7, 0.5), certain(np.nan, 0.2, 0.1)])
    assert [one.question for one in leverages(fitted({"main": MAIN}), rows, rng) if one.undefined] == ["a"]


def test_differences_give_the_slopes_of_a_linear_model_also_where_a_probability_is_0_or_1() -> None:
    found = gradient(fitted({"main": MAIN}), ROWS)
    assert found == pytest.approx(np.tile(MAIN[1:], (3, 1)), abs=1e-12)


def test_missing_questions_and_those_that_do_not_apply_have_no_gradient() -> None:
    rows = np.array([certain(np.nan, 0.7, 0.5), [0.0, 0.0, 0.3, 0.7, 0.5, 0.5]])
    found = gradient(fitted({"main": MAIN}), rows)
    assert found == pytest.approx(np.tile([0, 0, 0, 0.1, 0, 0.3], (2, 1)), abs=1e-12)


def test_differences_agree_with_the_gradient_of_a_logistic_curve_worked_by_hand() -> None:
    p = logistic().predict(ROWS)
    by_hand = (p * (1 - p))[:, None] * np.array(MAIN[1:])
    assert gradient(logistic(), ROWS) == pytest.approx(by_hand, abs=1e-5)


def test_leverage_is_what_the_formula_gives_by_hand(rng: np.random.Generator) -> None:
    rows = np.array([[0.2, 0.2, *certain(0.7, 0.5)]])
    # Σ p·v / Z = .2 / .4 = .5; its gradient is ((0 − .5) / .4, (1 − .5) / .4).
    assert asked_gradient(SHEET, rows, "a") == pytest.approx(np.array([[-1.25, 1.25, 0, 0, 0, 0]]))
    found = {one.question: one for one in leverages(fitted({"main": MAIN}), np.tile(rows, (2, 1)), rng)}
    assert found["a"].mean == pytest.approx(0.2 * 1.25 / (2 * 1.25**2))
    assert found["b"].mean == pytest.approx(per_text(np.array([[0, 0.1]]), np.array([[-0.7, 0.3]]))[0])
    assert (found["a"].spread, found["a"].n, found["a"].undefined) == (pytest.approx(0.0, abs=1e-9), 2, "")


def test_mean_spread_and_interval_are_over_texts(rng: np.random.Generator) -> None:
    own = gradient(logistic(), ROWS)
    values = per_text(own, asked_gradient(SHEET, ROWS, "a"))
    each = (leverages(logistic(), rows, rng)[0] for rows in (ROWS, np.concatenate([ROWS, ROWS])))
    three, six = each
    assert three.mean == six.mean == pytest.approx(values.mean())
    assert three.spread == pytest.approx(values.std(ddof=1))
    assert three.low is three.high is None  # so few texts have no interval
    assert six.low is not None
    assert six.high is not None
    assert values.min() <= six.low < six.mean < six.high <= values.max()


def test_the_input_is_left_as_it_is(rng: np.random.Generator) -> None:
    rows = ROWS.copy()
    leverages(fitted({"main": MAIN}), rows, rng)
    assert np.array_equal(rows, ROWS)
