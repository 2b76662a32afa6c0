"""Leverage of each question on the main one: (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi)."""

import numpy as np
import pytest
from linear_stand_in import SHEET, Linear, certain, fitted

from pollex.calibration.leverage import asked_gradient, gradient, leverages, per_text
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats, Ints

MAIN = [0.1, 0.0, 0.2, 0.0, 0.1, 0.0, 0.3]
ROWS = np.array([certain(0.2, 0.7, 0.5), certain(1.0, 0.0, 0.9), certain(0.6, 0.6, 0.1)])
RNG = np.random.default_rng(0)


class Logistic(Linear):
    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        upper = 1 / (1 + np.exp(-super()._distribution(X, judges, question)[:, 1]))
        return np.stack([1 - upper, upper], axis=1)


def logistic() -> Logistic:
    judged = [(0, "main", None, 0.0), (1, "main", None, 1.0)]
    return Logistic({"main": MAIN}, [0.5] * 6, {}).fit(ROWS, judged, questions=SHEET)


@pytest.mark.parametrize(
    ("main", "other", "why"),
    [
        (Scale("main", (0.0, 1.0), ordinal=False), Scale("kind", (0.0, 1.0)), "nothing to raise"),
        (Scale("main", (0.0, 1.0)), Scale("kind", (0.0, 1.0), ordinal=False), "not ordered"),
        (Scale("main", (0.0, 1.0)), Scale("kind", (0.0, 1.0), asked=False), "it is not asked"),
    ],
)
def test_a_question_without_a_unit_to_gain_or_raise_has_a_reason_and_no_figure(
    main: Scale, other: Scale, why: str
) -> None:
    sheet = Questionnaire((main, other), "main")
    (found,) = leverages(fitted({"main": [0.5] + [0.0] * sheet.width}, sheet), np.full((3, sheet.width), 0.5), RNG)
    assert (found.mean, found.low) == (None, None)
    assert why in found.undefined


def test_a_question_that_no_text_answers_is_undefined_and_no_infinity() -> None:
    rows = np.array([certain(np.nan, 0.7, 0.5), certain(np.nan, 0.2, 0.1)])
    assert [one.question for one in leverages(fitted({"main": MAIN}), rows, RNG) if one.undefined] == ["a"]


def test_differences_give_the_slopes_also_where_a_probability_is_0_or_1_and_none_of_what_is_missing() -> None:
    linear = fitted({"main": MAIN})
    assert gradient(linear, ROWS) == pytest.approx(np.tile(MAIN[1:], (3, 1)), abs=1e-12)
    gaps = np.array([certain(np.nan, 0.7, 0.5), [0.0, 0.0, 0.3, 0.7, 0.5, 0.5]])
    assert gradient(linear, gaps) == pytest.approx(np.tile([0, 0, 0, 0.1, 0, 0.3], (2, 1)), abs=1e-12)
    p = logistic().predict(ROWS)
    assert gradient(logistic(), ROWS) == pytest.approx((p * (1 - p))[:, None] * np.array(MAIN[1:]), abs=1e-5)


def test_leverage_is_what_the_formula_gives_by_hand() -> None:
    rows = np.array([[0.2, 0.2, *certain(0.7, 0.5)]])
    # Σ p·v / Z = .2 / .4 = .5; its gradient is ((0 − .5) / .4, (1 − .5) / .4).
    assert asked_gradient(SHEET, rows, "a") == pytest.approx(np.array([[-1.25, 1.25, 0, 0, 0, 0]]))
    found = {one.question: one for one in leverages(fitted({"main": MAIN}), np.tile(rows, (2, 1)), RNG)}
    assert found["a"].mean == pytest.approx(0.2 * 1.25 / (2 * 1.25**2))
    assert found["b"].mean == pytest.approx(per_text(np.array([[0, 0.1]]), np.array([[-0.7, 0.3]]))[0])
    assert (found["a"].spread, found["a"].n, found["a"].undefined) == (pytest.approx(0.0, abs=1e-9), 2, "")


def test_mean_spread_and_interval_are_over_texts_and_the_input_is_left_as_it_is() -> None:
    before = ROWS.copy()
    values = per_text(gradient(logistic(), ROWS), asked_gradient(SHEET, ROWS, "a"))
    three, six = (leverages(logistic(), rows, RNG)[0] for rows in (ROWS, np.concatenate([ROWS, ROWS])))
    assert three.mean == six.mean == pytest.approx(values.mean())
    assert three.spread == pytest.approx(values.std(ddof=1))
    assert three.low is three.high is None  # so few texts have no interval
    assert values.min() <= six.low < six.mean < six.high <= values.max()  # type: ignore[operator]
    assert np.array_equal(ROWS, before)
