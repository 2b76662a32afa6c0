"""Response curves: a judge's expected answer against the LLM's, smoothed over texts."""

import numpy as np
import pytest

from pollex.calibration.judgments import judgments
from pollex.calibration.models.baselines import AsIs, JudgeMean
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.response_curves import response_curves

QUESTIONS = Questionnaire((Scale("main", (1.0, 2.0)), Scale("thumb", (0.0, 1.0), asked=False)), "main")
SAID = np.linspace(0.1, 0.9, 60)
X = np.stack([1 - SAID, SAID], axis=1)
GIVEN = judgments(
    [(row, "main", "ann" if row % 2 else "bob", 1 + (row % 4 == 1)) for row in range(60)], questions=QUESTIONS
)


def test_what_is_not_asked_or_never_differs_has_no_curve() -> None:
    thumb = Questionnaire(QUESTIONS.scales, "thumb")
    y = [(row, "thumb", "ann", row % 2) for row in range(60)]
    model = JudgeMean().fit(X, y, questions=thumb)
    assert response_curves(model, X, judgments(y, questions=thumb)) == ((), ())
    same = np.tile([0.5, 0.5], (60, 1))
    assert response_curves(JudgeMean().fit(same, GIVEN, questions=QUESTIONS), same, GIVEN) == ((), ())
    classes = Questionnaire((Scale("main", (1.0, 2.0), ordinal=False), QUESTIONS.scales[1]), "main")
    assert response_curves(AsIs().fit(X, GIVEN, questions=classes), X, GIVEN) == ((), ())


def test_a_model_that_repeats_the_answer_has_the_diagonal_with_missing_answers_too() -> None:
    model = AsIs().fit(X, GIVEN, questions=QUESTIONS)
    mesh, (unknown, ann, bob) = found = response_curves(model, X, GIVEN)
    middle = slice(8, -8)  # at its ends a smoothed line bends
    np.testing.assert_allclose(unknown.predicted[middle], mesh[middle], atol=0.01)
    assert ann.predicted == bob.predicted == unknown.predicted
    assert [(curve.judge, curve.labels) for curve in (unknown, ann, bob)] == [(None, 60), ("ann", 30), ("bob", 30)]
    assert (unknown.given, ann.given, bob.given) == pytest.approx((1.25, 1.5, 1.0))
    assert response_curves(model, np.concatenate([X, np.full((5, 2), np.nan)]), GIVEN) == found


def test_a_model_that_looks_at_no_text_has_level_lines_a_judge() -> None:
    model = JudgeMean().fit(X, GIVEN, questions=QUESTIONS)
    _, curves = response_curves(model, X, GIVEN)
    for curve in curves:
        expected = model.predict(X[:1], [curve.judge])
        np.testing.assert_allclose(curve.predicted, np.full(len(curve.predicted), expected[0]))
    assert curves[1].predicted[0] > curves[0].predicted[0] > curves[2].predicted[0]


def test_what_a_judge_says_of_a_text_again_is_a_judgment_and_no_further_label() -> None:
    twice = judgments([(1, "main", "ann", 1), (1, "main", "ann", 2), (0, "main", "bob", 2)], questions=QUESTIONS)
    _, curves = response_curves(AsIs().fit(X, twice, questions=QUESTIONS), X, twice)
    assert [curve.labels for curve in curves] == [2, 1, 1]
    assert [curve.given for curve in curves[1:]] == pytest.approx([1.5, 2.0])
