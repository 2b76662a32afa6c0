"""The next question: expected reduction of the variance of the main answer, and when to stop."""

from __future__ import annotations

import numpy as np
import pytest
from linear_stand_in import SHEET, certain, fitted

from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.next_question import distances, nearest, next_question
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

NOTHING = np.full((1, 6), np.nan)
MAIN = [0.1, 0.0, 0.2, 0.0, 0.1, 0.0, 0.3]
REFERENCE = np.array([certain(0.0, 0.2, 0.5), certain(1.0, 0.4, 0.5), certain(0.0, 0.6, 0.5), certain(1.0, 0.8, 0.5)])


def test_no_reference_texts_or_one_neighbor_are_refused() -> None:
    model = fitted({"main": MAIN})
    with pytest.raises(WrongUse, match="0 reference texts"):
        next_question(model, NOTHING, np.zeros((0, 6)))
    with pytest.raises(WrongUse, match="1 neighbors"):
        next_question(model, NOTHING, REFERENCE, neighbors=1)


def test_judges_that_are_not_one_a_text_are_refused() -> None:
    with pytest.raises(WrongUse, match="2 judges for 1 rows"):
        next_question(fitted({"main": MAIN}), NOTHING, REFERENCE, ["ann", "bob"])


def test_a_main_answer_without_order_has_no_variance_to_reduce() -> None:
    loose = Questionnaire((Scale("main", (0.0, 1.0), ordinal=False, asked=False), *SHEET.scales[1:]), "main")
    with pytest.raises(WrongUse, match="'main' have no order"):
        next_question(fitted({"main": MAIN}, loose), NOTHING, REFERENCE)


@pytest.mark.parametrize("least", [-0.1, 1.0, np.nan])
def test_a_share_to_stop_at_that_is_none_is_refused(least: float) -> None:
    with pytest.raises(WrongUse, match="to stop at"):
        next_question(fitted({"main": MAIN}), NOTHING, REFERENCE, least=least)


def test_where_everything_is_answered_there_is_no_next_question() -> None:
    found = next_question(fitted({"main": MAIN}), REFERENCE[:2], REFERENCE)
    assert found.question == (None, None)
    assert np.isnan(found.reduction).all()


def test_a_question_that_no_reference_text_answers_is_never_asked() -> None:
    reference = REFERENCE.copy()
    reference[:, :2] = np.nan
    found = next_question(fitted({"main": MAIN}), NOTHING, reference, least=0)
    assert np.isnan(found.reduction[0, 0])
    assert found.question == ("b",)


def test_the_reduction_is_the_variance_of_the_expected_answer_by_hand() -> None:
    found = next_question(fitted({"main": MAIN}), NOTHING, REFERENCE)
    # a is 0, 1, 0, 1 with slope .2; b is .2, .4, .6, .8 with slope .1; c is always .5.
    assert found.reduction[0] == pytest.approx([0.04 * 0.25, 0.01 * 0.05, 0.0], abs=1e-12)
    expected = 0.1 + 0.5 * (0.2 + 0.1 + 0.3)
    assert found.variance == pytest.approx([expected * (1 - expected)])
    assert found.question == ("a",)


def test_it_stops_where_all_that_is_left_takes_too_small_a_share_of_the_variance() -> None:
    model = fitted({"main": MAIN})
    found = next_question(model, NOTHING, REFERENCE)
    # .2 a + .1 b is .02, .24, .06 and .28 more than the rest.
    left = np.var([0.02, 0.24, 0.06, 0.28])
    assert found.left == pytest.approx([left])
    share = left / (0.4 * 0.6)
    assert next_question(model, NOTHING, REFERENCE, least=share * 0.99).question == ("a",)
    assert next_question(model, NOTHING, REFERENCE, least=share * 1.01).question == (None,)
    assert next_question(model, REFERENCE[:1], REFERENCE).left == pytest.approx([0.0])


def test_what_is_known_says_how_the_rest_may_turn_out() -> None:
    # c varies only among texts with a = 1, b only among those with a = 0.
    reference = np.array(
        [certain(0.0, 0.0, 0.5), certain(0.0, 1.0, 0.5), certain(1.0, 0.5, 0.0), certain(1.0, 0.5, 1.0)]
    )
    texts = np.array([certain(0.0, np.nan, np.nan), certain(1.0, np.nan, np.nan)])
    found = next_question(fitted({"main": MAIN}), texts, reference, neighbors=2)
    assert found.question == ("b", "c")
    assert found.reduction[0, 1:] == pytest.approx([0.01 * 0.25, 0.0], abs=1e-12)
    assert found.reduction[1, 1:] == pytest.approx([0.0, 0.09 * 0.25], abs=1e-12)


def test_many_texts_at_once_are_answered_as_one_by_one_and_the_input_is_left_as_it_is() -> None:
    rng = np.random.default_rng(3)
    reference = np.array([certain(*row) for row in rng.random((50, 3))])
    texts = np.array([certain(*row) for row in rng.random((30, 3))])
    texts[rng.random((30, 3)).repeat(2, axis=1) < 0.5] = np.nan
    before = texts.copy(), reference.copy()
    model = fitted({"main": MAIN}, shifts={"x": 0.05, "y": -0.05})
    judges = ["x", "y", None] * 10
    whole = next_question(model, texts, reference, judges, neighbors=7)
    single = [next_question(model, texts[[n]], reference, [judges[n]], neighbors=7) for n in range(30)]
    assert whole.question == tuple(one.question[0] for one in single)
    for name in ("reduction", "left", "variance"):
        alone = [getattr(one, name)[0] for one in single]
        assert np.allclose(getattr(whole, name), alone, atol=1e-12, equal_nan=True)
    assert np.array_equal(np.isnan(whole.reduction), ~np.isnan(texts[:, ::2]))
    assert np.array_equal(texts, before[0], equal_nan=True)
    assert np.array_equal(reference, before[1])


def test_distances_by_hand_count_known_questions_alone_and_one_that_does_not_apply() -> None:
    reference = np.array([certain(0.0, 0.5, 0.5), certain(1.0, 0.5, 0.5), [0.0, 0.0, 0.5, 0.5, 0.5, 0.5]])
    texts = np.array([certain(1.0, np.nan, np.nan), certain(np.nan, np.nan, 0.5)])
    # Expected answers to a: 0, 1 and none, so mean .5 and deviation .5: −1, 1, and 0 for the one that doesn't apply.
    assert distances(SHEET, texts, reference) == pytest.approx(np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))


def test_among_equals_the_first_are_nearest() -> None:
    assert nearest(np.array([[1.0, 0.0, 1.0, 0.0, 1.0]]), 3).tolist() == [[1, 3, 0]]
    assert nearest(np.array([[1.0, 0.0]]), 3).tolist() == [[1, 0]]


def test_another_seed_picks_other_reference_texts_and_the_same_seed_the_same() -> None:
    rng = np.random.default_rng(1)
    reference = np.array([certain(*row) for row in rng.random((200, 3))])
    model = fitted({"main": MAIN})
    first, again, other = (next_question(model, NOTHING, reference, seed=seed).reduction for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_with_a_model_that_learned_it_the_question_that_decides_the_thumb_comes_first() -> None:
    rng = np.random.default_rng(5)
    sheet = Questionnaire(
        (Scale("noise", (0.0, 1.0)), Scale("tells", (0.0, 1.0)), Scale("thumb", (0.0, 1.0), asked=False)), "thumb"
    )
    said = rng.random((120, 2))
    X = np.stack([1 - said[:, 0], said[:, 0], 1 - said[:, 1], said[:, 1]], axis=1)
    thumbs = (rng.random(120) < 0.05 + 0.9 * said[:, 1]).astype(float)
    y = [(row, "thumb", None, value) for row, value in enumerate(thumbs.tolist())]
    model = OrdinalMixedEffects(shared=1.0).fit(X, y, questions=sheet)
    assert next_question(model, np.full((1, 4), np.nan), X).question == ("tells",)
