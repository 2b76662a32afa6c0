"""Leverage of each question on the main one: (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi)."""

from __future__ import annotations

import numpy as np
import pytest
from linear_stand_in import SHEET, Linear, certain, fitted

from pollex.calibration.leverage import asked_gradient, gradient, leverages, per_text
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints

MAIN = [0.1, 0.0, 0.2, 0.0, 0.1, 0.0, 0.3]
A = [0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0]
B = [0.2, 0.0, 0.1, 0.0, 0.2, 0.0, 0.0]
ROWS = np.array([certain(0.2, 0.7, 0.5), certain(1.0, 0.0, 0.9), certain(0.6, 0.6, 0.1)])
TWICE = np.concatenate([ROWS, ROWS])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_question_that_the_model_has_not_learned_has_a_reason_and_no_figure(rng: np.random.Generator) -> None:
    found = {one.question: one for one in leverages(fitted({"main": MAIN, "a": A, "b": B}), ROWS, rng)}
    assert found["c"].mean is None
    assert found["c"].low is None
    assert "c was not learned" in found["c"].undefined


def test_where_the_main_question_has_no_order_nothing_can_be_raised(rng: np.random.Generator) -> None:
    sheet = Questionnaire((Scale("main", (0.0, 1.0), ordinal=False), Scale("clear", (0.0, 1.0))), "main")
    model = fitted({"main": [0, 0.1, 0.2, 0.3, 0.1], "clear": [0, 0.1, 0.2, 0.3, 0.1]}, sheet)
    (found,) = leverages(model, np.full((3, 4), 0.5), rng)
    assert found.mean is None
    assert "nothing to raise" in found.undefined


def test_a_question_without_order_has_no_unit_to_gain(rng: np.random.Generator) -> None:
    sheet = Questionnaire((Scale("main", (0.0, 1.0)), Scale("kind", (0.0, 1.0), ordinal=False)), "main")
    model = fitted({"main": [0, 0.1, 0.2, 0.3, 0.1], "kind": [0, 0.1, 0.2, 0.3, 0.1]}, sheet)
    (found,) = leverages(model, np.full((3, 4), 0.5), rng)
    assert found.mean is None
    assert "not ordered" in found.undefined


def test_a_question_whose_answer_depends_on_nothing_is_undefined_and_no_infinity(rng: np.random.Generator) -> None:
    model = fitted({"main": MAIN, "a": [0.5] + [0.0] * 6, "b": B, "c": A})
    assert [one.question for one in leverages(model, ROWS, rng) if one.undefined] == ["a"]


def test_other_questions_than_there_are_and_too_few_judges_are_refused() -> None:
    model = fitted({"main": MAIN})
    with pytest.raises(WrongUse, match="no question is called 'z'"):
        gradient(model, ROWS, question="z")
    with pytest.raises(WrongUse, match="1 judges for 3 rows"):
        gradient(model, ROWS, judges=["x"])


def test_differences_give_the_slopes_of_a_linear_model_also_where_a_probability_is_0_or_1() -> None:
    found = gradient(fitted({"main": MAIN}), ROWS)
    assert found == pytest.approx(np.tile(MAIN[1:], (3, 1)), abs=1e-12)


def test_missing_questions_and_those_that_do_not_apply_have_no_gradient() -> None:
    rows = np.array([certain(np.nan, 0.7, 0.5), [0.0, 0.0, 0.3, 0.7, 0.5, 0.5]])
    found = gradient(fitted({"main": MAIN}), rows)
    assert found == pytest.approx(np.tile([0, 0, 0, 0.1, 0, 0.3], (2, 1)), abs=1e-12)


def test_leverage_is_what_the_formula_gives_by_hand(rng: np.random.Generator) -> None:
    found = {one.question: one for one in leverages(fitted({"main": MAIN, "a": A, "b": B, "c": MAIN}), ROWS, rng)}
    # ∇ŷ0 = (0, .2, 0, .1, 0, .3); ∇ŷa = (0, .4, 0, 0, 0, 0): .08 / .16. ∇ŷb = (0, .1, 0, .2, 0, 0): .04 / .05.
    assert found["a"].mean == pytest.approx(0.5, abs=1e-9)
    assert found["b"].mean == pytest.approx(0.8, abs=1e-9)
    assert found["c"].mean == pytest.approx(1.0, abs=1e-9)
    assert found["a"].spread == pytest.approx(0.0, abs=1e-9)
    assert (found["a"].n, found["a"].undefined) == (3, "")


def test_mean_spread_and_interval_are_over_texts(rng: np.random.Generator) -> None:
    class Curved(Linear):
        """The main answer's slope on a is the probability of a itself."""

        def gradient(self, X: Floats, judges: Ints, question: int) -> Floats:
            slopes = self.weights[self.questionnaire_.scales[question].question][1:]
            found = np.tile(slopes, (len(X), 1))
            if question == self.questionnaire_.index():
                found[:, 1] = X[:, 1]
            return found

    plain = fitted({"main": MAIN, "a": A, "b": B, "c": B})
    curved = Curved(plain.weights, plain.usual, plain.shifts).fit(
        ROWS, [(0, "main", None, 0.0), (1, "main", None, 1.0)], questions=SHEET
    )
    values = np.array([0.2, 1.0, 0.6]) / 0.4  # the model's own gradient is used
    three, found = (next(one for one in leverages(curved, rows, rng) if one.question == "a") for rows in (ROWS, TWICE))
    assert three.mean == found.mean == pytest.approx(values.mean())
    assert three.spread == pytest.approx(values.std(ddof=1))
    assert three.low is three.high is None  # so few texts have no interval
    assert found.low is not None
    assert found.high is not None
    assert values.min() <= found.low < found.mean < found.high <= values.max()


def test_differences_agree_with_the_gradient_of_a_logistic_curve_worked_by_hand() -> None:
    class Logistic(Linear):
        def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
            upper = 1 / (1 + np.exp(-super()._distribution(X, judges, question)[:, 1]))
            return np.stack([1 - upper, upper], axis=1)

    model = Logistic({"main": MAIN}, [0.5] * 6, {}).fit(
        ROWS, [(0, "main", None, 0.0), (1, "main", None, 1.0)], questions=SHEET
    )
    p = model.predict(ROWS)
    by_hand = (p * (1 - p))[:, None] * np.array(MAIN[1:])
    assert gradient(model, ROWS) == pytest.approx(by_hand, abs=1e-5)


def test_what_x_says_itself_has_its_gradient_by_hand_and_its_leverage(rng: np.random.Generator) -> None:
    rows = np.array([[0.2, 0.2, *certain(0.7, 0.5)]])
    # Σ p·v / Z = .2 / .4 = .5; its gradient is ((0 − .5) / .4, (1 − .5) / .4).
    assert asked_gradient(SHEET, rows, "a") == pytest.approx(np.array([[-1.25, 1.25, 0, 0, 0, 0]]))
    found = {one.question: one for one in leverages(fitted({"main": MAIN}), np.tile(rows, (2, 1)), rng, whose="asked")}
    assert found["a"].mean == pytest.approx(0.2 * 1.25 / (2 * 1.25**2))
    assert found["b"].mean == pytest.approx(per_text(np.array([[0, 0.1]]), np.array([[-0.7, 0.3]]))[0])


def test_the_input_is_left_as_it_is(rng: np.random.Generator) -> None:
    rows = ROWS.copy()
    leverages(fitted({"main": MAIN, "a": A}), rows, rng)
    assert np.array_equal(rows, ROWS)
