"""The choice of what gives the probability of a thumb up."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from pollex.calibration import thumbs
from pollex.calibration.candidates import BEST, NAMES, NETWORK, PLAIN, START, candidate
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.thumbs import (
    FEW,
    THUMB,
    Fold,
    ModelComparison,
    _choice,
    compare_models,
    fit_one,
    probability_positive,
    questionnaire,
    thumb_models,
)
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats

SIGNS = (1.0, 1.0, -1.0)


def small_networks(signs: Sequence[float]) -> dict[str, JudgedEstimator]:
    models = thumb_models(signs)
    models[NETWORK].set_params(seeds=2, strengths=(20.0,))
    return models


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thumbs, "thumb_models", small_networks)
        yield


def drawn(n: int = 60) -> tuple[Floats, Bools]:
    """Answers `[row, rubric, option]` that lean towards what the thumb says."""
    rng = np.random.default_rng(0)
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
    return compare_models(dealt(answers), positive, wanted=BEST)


def test_the_best_is_chosen_and_its_log_loss_is_that_of_the_probabilities_shown(found: ModelComparison) -> None:
    assert {score.name for score in found.scores} == set(thumb_models(SIGNS))
    best = min(found.scores, key=lambda score: score.log_loss)
    assert (best.name, best.behind, best.error) == (found.chosen, 0.0, 0.0)
    for score in found.scores:
        assert score.behind == pytest.approx(score.log_loss - best.log_loss)
        assert score.n == 60
    given = np.where(drawn()[1], found.held_out, 1 - found.held_out)
    assert best.log_loss == pytest.approx(float(-np.log(given).mean()))


@pytest.fixture
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbs, "thumb_models", lambda signs: dict(list(thumb_models(signs).items())[:-1]))


def test_no_row_is_predicted_by_a_model_that_saw_its_thumb(without_network: None) -> None:
    answers, positive = drawn()
    folds = dealt(answers, 2)
    model = fit_one(PLAIN, answers[~folds[0].out], SIGNS, positive[~folds[0].out])
    alone = probability_positive(model, answers[folds[0].out])
    for labels in (positive, positive ^ folds[0].out):
        again = compare_models(folds, labels, wanted=PLAIN)
        assert again.held_out[folds[0].out] == pytest.approx(alone)


def test_rubrics_may_differ_from_fold_to_fold() -> None:
    answers, positive = drawn()
    first, *others = dealt(answers, 2)
    told: list[str] = []
    fewer = Fold(first.out, SIGNS[1:], answers[:, 1:])
    again = compare_models([fewer, *others], positive, progress=lambda: told.append("."))
    assert not np.isnan(again.held_out).any()
    assert len(told) == 2


def test_rows_that_go_together_say_less_of_who_is_behind(without_network: None) -> None:
    # The network's own folds differ, since they keep together what goes together.
    answers, positive = drawn(40)
    twice = answers.repeat(2, axis=0)
    folds = [Fold(fold.out.repeat(2), SIGNS, twice) for fold in dealt(answers)]
    alone, paired = (
        compare_models(folds, positive.repeat(2), together=together, wanted=PLAIN)
        for together in (None, np.arange(40).repeat(2))
    )
    assert paired.held_out == pytest.approx(alone.held_out)
    for one, two in zip(alone.scores, paired.scores, strict=True):
        assert two.behind == one.behind
        assert two.error == pytest.approx(one.error * np.sqrt(2 * (40 / 39) / (80 / 79)))


def test_the_network_is_taken_unless_another_is_better_by_more_than_a_standard_error() -> None:
    ahead, blocks = np.array([0.0, 0.2] * 10), np.arange(20)  # 0.1 ± 0.02 better
    cases = (
        ({START: -ahead}, NETWORK, START, "0.100 ± 0.023 nats better than the network, more than a standard error"),
        ({START: -ahead * np.array([1, -1] * 10)}, NETWORK, NETWORK, "the network has the least log-loss"),
        ({START: np.array([-1.0, 0.9] * 10)}, NETWORK, NETWORK, "0.050 ± 0.218 nats better, which is within"),
        ({START: np.array([-1.0, 0.9] * 10)}, BEST, START, "has the least log-loss"),
        ({START: -ahead}, PLAIN, PLAIN, "was asked for; decorrelated NetSAT has the least log-loss"),
    )
    for others, wanted, chosen, why in cases:
        found = _choice({NETWORK: np.zeros(20), PLAIN: np.ones(20)} | others, blocks, wanted)
        assert found[0] == chosen
        assert why in found[1]


def test_of_few_labels_nothing_is_learned_beyond_netsat() -> None:
    answers, positive = drawn(FEW - 1)
    found = compare_models(dealt(answers, 2), positive)
    assert found.chosen == PLAIN
    assert "49 labels are too few" in found.why
    assert NETWORK not in {score.name for score in found.scores}


def test_candidates_are_found_however_they_are_written_and_asked_the_rubrics_and_not_the_thumb() -> None:
    assert tuple(thumb_models(SIGNS)) == NAMES
    written = ("network", "decorrelated-netsat", "NetSAT", "Best")
    assert [candidate(name) for name in written] == [NETWORK, START, PLAIN, BEST]
    with pytest.raises(WrongUse, match="no model of the probability is called 'forest'"):
        candidate("forest")
    questions = questionnaire(["r1", "r2"])
    assert [scale.question for scale in questions.asked] == ["r1", "r2"]
    assert (questions.main, questions.width) == (THUMB, 10)


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_gives_users_their_own_intercept_and_strangers_the_shared_part(name: str) -> None:
    answers, _ = drawn()
    model = fit_one(name, answers, SIGNS, np.arange(60) % 2 == 0, ["mild", "strict"] * 30)
    mild, strict, stranger, nobody = (
        float(probability_positive(model, answers[:1], None if who is None else [who])[0])
        for who in ("mild", "strict", "new", None)
    )
    assert strict < nobody < mild
    assert stranger == nobody
