"""The choice of what gives the probability of a thumb up."""

from __future__ import annotations

import numpy as np
import pytest

from pollex.calibration.thumbs import (
    PLAIN,
    THUMB,
    Fold,
    ModelComparison,
    compare_models,
    fitted,
    probability_positive,
    questionnaire,
    thumb_models,
)
from pollex.measures.arrays import Bools, Floats

SIGNS = (1.0, 1.0, -1.0)


def drawn(n: int = 60, seed: int = 0) -> tuple[Floats, Bools]:
    """Answers `[row, rubric, option]` that lean towards what the thumb says."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.6
    lean = np.where(positive, 1.0, -1.0)[:, None] * np.array(SIGNS) + rng.normal(0, 1.5, (n, 3))
    weights = np.exp(lean[:, :, None] * np.linspace(-1, 1, 5))
    return weights / weights.sum(axis=2, keepdims=True), positive


def dealt(answers: Floats, count: int = 5) -> list[Fold]:
    numbers = np.arange(len(answers)) % count
    return [Fold(numbers == number, SIGNS, answers) for number in range(count)]


@pytest.fixture(scope="module")
def found() -> ModelComparison:
    answers, positive = drawn()
    return compare_models(dealt(answers), positive)


def test_the_best_is_chosen_and_all_others_are_behind_it(found: ModelComparison) -> None:
    assert {score.name for score in found.scores} == set(thumb_models(SIGNS))
    best = min(found.scores, key=lambda score: score.log_loss)
    assert (best.name, best.behind, best.error) == (found.chosen, 0.0, 0.0)
    for score in found.scores:
        assert score.behind == pytest.approx(score.log_loss - best.log_loss)
        assert score.n == 60


def test_the_log_loss_is_that_of_the_probabilities_shown(found: ModelComparison) -> None:
    positive = drawn()[1]
    given = np.where(positive, found.held_out, 1 - found.held_out)
    (own,) = [score.log_loss for score in found.scores if score.name == found.chosen]
    assert own == pytest.approx(float(-np.log(given).mean()))


def test_no_row_is_predicted_by_a_model_that_saw_its_thumb() -> None:
    answers, positive = drawn()
    folds = dealt(answers)
    turned = positive ^ folds[0].out
    model = fitted(PLAIN, answers[~folds[0].out], SIGNS, positive[~folds[0].out])
    alone = probability_positive(model, answers[folds[0].out])
    for thumbs in (positive, turned):
        again = compare_models(folds, thumbs)
        assert again.held_out.shape == (60,)
        if again.chosen == PLAIN:
            assert again.held_out[folds[0].out] == pytest.approx(alone)
    one, other = compare_models(folds, positive), compare_models(folds, turned)
    if one.chosen == other.chosen:
        assert one.held_out[folds[0].out] == pytest.approx(other.held_out[folds[0].out])


def test_rubrics_may_differ_from_fold_to_fold() -> None:
    answers, positive = drawn()
    first, *others = dealt(answers)
    fewer = Fold(first.out, SIGNS[1:], answers[:, 1:])
    told: list[str] = []
    again = compare_models([fewer, *others], positive, progress=lambda: told.append("."))
    assert not np.isnan(again.held_out).any()
    assert len(told) == 5


def test_rows_that_go_together_say_less_of_who_is_behind() -> None:
    answers, positive = drawn()
    twice, thumbs = answers.repeat(2, axis=0), positive.repeat(2)
    folds = [Fold(fold.out.repeat(2), SIGNS, twice) for fold in dealt(answers)]
    alone, paired = compare_models(folds, thumbs), compare_models(folds, thumbs, together=np.arange(60).repeat(2))
    assert paired.held_out == pytest.approx(alone.held_out)
    for one, both in zip(alone.scores, paired.scores, strict=True):
        assert both.behind == one.behind
        assert both.error == pytest.approx(one.error * np.sqrt(2 * (60 / 59) / (120 / 119)))
    assert any(score.error > 0 for score in paired.scores)


def test_the_questionnaire_asks_the_rubrics_and_not_the_thumb() -> None:
    questions = questionnaire(["r1", "r2"])
    assert [scale.question for scale in questions.asked] == ["r1", "r2"]
    assert (questions.main, questions.width) == (THUMB, 10)


@pytest.mark.parametrize("name", list(thumb_models(SIGNS)))
def test_every_candidate_gives_users_their_own_intercept_and_strangers_the_shared_part(name: str) -> None:
    answers, _ = drawn()
    positive = np.arange(60) % 2 == 0
    model = fitted(name, answers, SIGNS, positive, ["mild", "strict"] * 30)
    mild, strict, stranger, nobody = (
        float(probability_positive(model, answers[:1], None if who is None else [who])[0])
        for who in ("mild", "strict", "new", None)
    )
    assert strict < nobody < mild
    assert stranger == nobody
