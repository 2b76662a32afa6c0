"""What a question weighs: its leverage, (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi), and judges' expected answers against the LLM's."""

import numpy as np
import pytest
from scipy.special import expit

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments, convert_judgments_to_arrays
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.calibration.leverage import (
    compute_leverage_per_text,
    compute_leverages,
    compute_main_gradient,
    compute_own_gradient,
)
from pollex.rooms.questionnaire.calibration.models.as_is import AsIs
from pollex.rooms.questionnaire.calibration.models.judge_mean import JudgeMean
from pollex.rooms.questionnaire.calibration.response_curves import compute_response_curves

YES_NO = (0.0, 1.0)
SHEET = Questionnaire(
    (Scale("main", YES_NO, asked=False), *(Scale(name, YES_NO) for name in "abc")), "main"
)
SLOPES = [0.0, 0.2, 0.0, 0.1, 0.0, 0.3]


class Curve(JudgedEstimator):
    """Answers the main question with yes by 0.1 and the slopes' sum, or by the logistic of that."""

    def __init__(self, logistic: bool = False) -> None:
        self.logistic = logistic

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        pass

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        upper = 0.1 + np.where(np.isnan(X), 0.5, X) @ np.resize(SLOPES, X.shape[1])
        upper = expit(upper) if self.logistic else upper
        return np.stack([1 - upper, upper], axis=1)


def curve(logistic: bool = False, sheet: Questionnaire = SHEET) -> JudgedEstimator:
    X = np.full((2, sheet.width), 0.5)
    main = sheet.main
    return Curve(logistic).fit(X, [(0, main, None, 0.0), (1, main, None, 1.0)], questions=sheet)


def certain(*answers: float) -> list[float]:
    """A row of yes/no answers given as the probability of yes; NaN is not asked."""
    return [part for answer in answers for part in (1 - answer, answer)]


ROWS = np.array([certain(0.2, 0.7, 0.5), certain(1.0, 0.0, 0.9), certain(0.6, 0.6, 0.1)])
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("main", "other", "why"),
    [
        (Scale("main", YES_NO, ordinal=False), Scale("kind", YES_NO), "nothing to raise"),
        (Scale("main", YES_NO), Scale("kind", YES_NO, ordinal=False), "not ordered"),
        (Scale("main", YES_NO), Scale("kind", YES_NO, asked=False), "it is not asked"),
    ],
)
def test_a_question_without_a_unit_to_gain_or_raise_has_a_reason_and_no_figure(
    main: Scale, other: Scale, why: str
) -> None:
    sheet = Questionnaire((main, other), "main")
    (found,) = compute_leverages(curve(sheet=sheet), np.full((3, sheet.width), 0.5), RNG)
    assert (found.mean, found.low) == (None, None)
    assert why in found.undefined


def test_a_question_that_no_text_answers_is_undefined_and_no_infinity() -> None:
    rows = np.array([certain(np.nan, 0.7, 0.5), certain(np.nan, 0.2, 0.1)])
    assert [one.question for one in compute_leverages(curve(), rows, RNG) if one.undefined] == ["a"]


def test_differences_give_the_slopes_also_where_a_probability_is_0_or_1_and_none_of_what_is_missing() -> (
    None
):
    assert compute_main_gradient(curve(), ROWS) == pytest.approx(np.tile(SLOPES, (3, 1)), abs=1e-12)
    gaps = np.array([certain(np.nan, 0.7, 0.5), [0.0, 0.0, 0.3, 0.7, 0.5, 0.5]])
    assert compute_main_gradient(curve(), gaps) == pytest.approx(
        np.tile([0, 0, 0, 0.1, 0, 0.3], (2, 1)), abs=1e-12
    )
    p = curve(logistic=True).predict(ROWS)
    assert compute_main_gradient(curve(logistic=True), ROWS) == pytest.approx(
        (p * (1 - p))[:, None] * SLOPES, abs=1e-5
    )


def test_leverage_is_what_the_formula_gives_by_hand() -> None:
    rows = np.array([[0.2, 0.2, *certain(0.7, 0.5)]])
    # Σ p·v / Z = .2 / .4 = .5; its gradient is ((0 − .5) / .4, (1 − .5) / .4).
    assert compute_own_gradient(SHEET, rows, "a") == pytest.approx(
        np.array([[-1.25, 1.25, 0, 0, 0, 0]])
    )
    found = {one.question: one for one in compute_leverages(curve(), np.tile(rows, (2, 1)), RNG)}
    assert found["a"].mean == pytest.approx(0.2 * 1.25 / (2 * 1.25**2))
    assert found["b"].mean == pytest.approx(
        compute_leverage_per_text(np.array([[0, 0.1]]), np.array([[-0.7, 0.3]]))[0]
    )
    assert (found["a"].spread, found["a"].n, found["a"].undefined) == (
        pytest.approx(0.0, abs=1e-9),
        2,
        "",
    )


def test_mean_spread_and_interval_are_over_texts_and_the_input_is_left_as_it_is() -> None:
    before = ROWS.copy()
    model = curve(logistic=True)
    values = compute_leverage_per_text(
        compute_main_gradient(model, ROWS), compute_own_gradient(SHEET, ROWS, "a")
    )
    three, six = (
        compute_leverages(model, rows, RNG)[0] for rows in (ROWS, np.concatenate([ROWS, ROWS]))
    )
    assert three.mean == six.mean == pytest.approx(values.mean())
    assert three.spread == pytest.approx(values.std(ddof=1))
    assert three.low is three.high is None  # so few texts have no interval
    assert values.min() <= six.low < six.mean < six.high <= values.max()  # type: ignore[operator]
    assert np.array_equal(ROWS, before)


RATED = Questionnaire((Scale("main", (1.0, 2.0)), Scale("thumb", (0.0, 1.0), asked=False)), "main")
SAID = np.linspace(0.1, 0.9, 60)
TEXTS = np.stack([1 - SAID, SAID], axis=1)
GIVEN = convert_judgments_to_arrays(
    [(row, "main", "ann" if row % 2 else "bob", 1 + (row % 4 == 1)) for row in range(60)],
    questions=RATED,
)


def test_what_is_not_asked_or_never_differs_has_no_curve() -> None:
    thumb = Questionnaire(RATED.scales, "thumb")
    y = [(row, "thumb", "ann", row % 2) for row in range(60)]
    model = JudgeMean().fit(TEXTS, y, questions=thumb)
    assert compute_response_curves(
        model, TEXTS, convert_judgments_to_arrays(y, questions=thumb)
    ) == ((), ())
    same = np.tile([0.5, 0.5], (60, 1))
    assert compute_response_curves(JudgeMean().fit(same, GIVEN, questions=RATED), same, GIVEN) == (
        (),
        (),
    )
    classes = Questionnaire((Scale("main", (1.0, 2.0), ordinal=False), RATED.scales[1]), "main")
    assert compute_response_curves(AsIs().fit(TEXTS, GIVEN, questions=classes), TEXTS, GIVEN) == (
        (),
        (),
    )


def test_a_model_that_repeats_the_answer_has_the_diagonal_with_missing_answers_too() -> None:
    model = AsIs().fit(TEXTS, GIVEN, questions=RATED)
    mesh, (unknown, ann, bob) = found = compute_response_curves(model, TEXTS, GIVEN)
    middle = slice(8, -8)  # at its ends a smoothed line bends
    np.testing.assert_allclose(unknown.predicted[middle], mesh[middle], atol=0.01)
    assert ann.predicted == bob.predicted == unknown.predicted
    assert [(curve.judge, curve.labels) for curve in (unknown, ann, bob)] == [
        (None, 60),
        ("ann", 30),
        ("bob", 30),
    ]
    assert (unknown.given, ann.given, bob.given) == pytest.approx((1.25, 1.5, 1.0))
    assert (
        compute_response_curves(model, np.concatenate([TEXTS, np.full((5, 2), np.nan)]), GIVEN)
        == found
    )


def test_a_model_that_looks_at_no_text_has_level_lines_a_judge() -> None:
    model = JudgeMean().fit(TEXTS, GIVEN, questions=RATED)
    _, curves = compute_response_curves(model, TEXTS, GIVEN)
    for curve in curves:
        expected = model.predict(TEXTS[:1], [curve.judge])
        np.testing.assert_allclose(curve.predicted, np.full(len(curve.predicted), expected[0]))
    assert curves[1].predicted[0] > curves[0].predicted[0] > curves[2].predicted[0]


def test_what_a_judge_says_of_a_text_again_is_a_judgment_and_no_further_label() -> None:
    twice = convert_judgments_to_arrays(
        [(1, "main", "ann", 1), (1, "main", "ann", 2), (0, "main", "bob", 2)], questions=RATED
    )
    _, curves = compute_response_curves(AsIs().fit(TEXTS, twice, questions=RATED), TEXTS, twice)
    assert [curve.labels for curve in curves] == [2, 1, 1]
    assert [curve.given for curve in curves[1:]] == pytest.approx([1.5, 2.0])
