"""The choice of what gives the probability of a thumb up."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from pollex.calibration import thumbs
from pollex.calibration.candidates import (
    CALIBRATION_MODEL_NAMES,
    CALIBRATION_NETWORK_NAME,
    DECORRELATED_NETSAT_NAME,
    LEAST_LOG_LOSS_CHOICE_NAME,
    NETWORK_STARTING_MODEL_NAME,
    PLAIN_NETSAT_NAME,
    find_calibration_model_name,
)
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.thumbs import (
    THUMB_QUESTION_ID,
    Fold,
    ModelComparison,
    compare_calibration_models_by_folds,
    fit_calibration_model,
    make_candidates,
    make_cross_validation_of_each_model,
    make_thumb_questionnaire,
    predict_thumb_up_probability,
)
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats

SIGNS = (1.0, 1.0, -1.0)


def small_networks(signs: Sequence[float]) -> dict[str, JudgedEstimator]:
    models = make_candidates(signs)
    models[CALIBRATION_NETWORK_NAME].set_params(seeds=2)
    return models


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thumbs, "make_candidates", small_networks)
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
    return compare_calibration_models_by_folds(
        dealt(answers), positive, requested=LEAST_LOG_LOSS_CHOICE_NAME
    )


def test_the_best_is_chosen_and_its_log_loss_is_that_of_the_probabilities_shown(
    found: ModelComparison,
) -> None:
    assert {score.name for score in found.scores} == set(make_candidates(SIGNS))
    best = min(found.scores, key=lambda score: score.log_loss)
    assert (best.name, best.behind, best.error) == (found.chosen, 0.0, 0.0)
    for score in found.scores:
        assert score.behind == pytest.approx(score.log_loss - best.log_loss)
        assert score.n == 60
    given = np.where(drawn()[1], found.held_out, 1 - found.held_out)
    assert best.log_loss == pytest.approx(float(-np.log(given).mean()))


@pytest.fixture
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        thumbs, "make_candidates", lambda signs: dict(list(make_candidates(signs).items())[:-1])
    )


def test_no_row_is_predicted_by_a_model_that_saw_its_thumb(without_network: None) -> None:
    answers, positive = drawn()
    folds = dealt(answers, 2)
    model = fit_calibration_model(
        PLAIN_NETSAT_NAME, answers[~folds[0].out], SIGNS, positive[~folds[0].out]
    )
    alone = predict_thumb_up_probability(model, answers[folds[0].out])
    for labels in (positive, positive ^ folds[0].out):
        again = compare_calibration_models_by_folds(folds, labels, requested=PLAIN_NETSAT_NAME)
        assert again.held_out[folds[0].out] == pytest.approx(alone)


def test_rubrics_may_differ_from_fold_to_fold() -> None:
    answers, positive = drawn()
    first, *others = dealt(answers, 2)
    told: list[str] = []
    fewer = Fold(first.out, SIGNS[1:], answers[:, 1:])
    again = compare_calibration_models_by_folds(
        [fewer, *others], positive, progress=lambda: told.append(".")
    )
    assert not np.isnan(again.held_out).any()
    assert len(told) == 2


def test_rows_that_go_together_say_less_of_who_is_behind(without_network: None) -> None:
    # The network's own folds differ, since they keep together what goes together.
    answers, positive = drawn(40)
    twice = answers.repeat(2, axis=0)
    folds = [Fold(fold.out.repeat(2), SIGNS, twice) for fold in dealt(answers)]
    alone, paired = (
        compare_calibration_models_by_folds(
            folds, positive.repeat(2), together=together, requested=PLAIN_NETSAT_NAME
        )
        for together in (None, np.arange(40).repeat(2))
    )
    assert paired.held_out == pytest.approx(alone.held_out)
    for one, two in zip(alone.scores, paired.scores, strict=True):
        assert two.behind == one.behind
        assert two.error == pytest.approx(one.error * np.sqrt(2 * (40 / 39) / (80 / 79)))


def test_the_network_is_the_model_however_few_the_labels_unless_another_is_asked_for() -> None:
    answers, positive = drawn(24)
    folds = dealt(answers, 2)
    for wanted, chosen in (
        (CALIBRATION_NETWORK_NAME, CALIBRATION_NETWORK_NAME),
        (PLAIN_NETSAT_NAME, PLAIN_NETSAT_NAME),
    ):
        found = compare_calibration_models_by_folds(folds, positive, requested=wanted)
        assert found.chosen == chosen
        assert {score.name for score in found.scores} == set(CALIBRATION_MODEL_NAMES)


def test_another_model_is_ahead_only_beyond_what_all_comparisons_at_once_may_show_by_chance() -> (
    None
):
    rng = np.random.default_rng(1)
    blocks = np.arange(100)
    losses = {
        CALIBRATION_NETWORK_NAME: np.ones(100),
        PLAIN_NETSAT_NAME: np.ones(100) - rng.normal(0.3, 0.5, 100),
    }
    losses |= {f"noise {number}": np.ones(100) - rng.normal(0, 0.5, 100) for number in range(8)}
    found = {
        score.name: score
        for score in make_cross_validation_of_each_model(losses, CALIBRATION_NETWORK_NAME, blocks)
    }
    assert found[CALIBRATION_NETWORK_NAME].ahead is None
    ahead = {name for name, score in found.items() if score.low is not None and score.low > 0}
    assert ahead == {PLAIN_NETSAT_NAME}
    alone = {
        score.name: score
        for score in make_cross_validation_of_each_model(
            {name: losses[name] for name in (CALIBRATION_NETWORK_NAME, PLAIN_NETSAT_NAME)},
            CALIBRATION_NETWORK_NAME,
            blocks,
        )
    }
    assert (
        alone[PLAIN_NETSAT_NAME].high - alone[PLAIN_NETSAT_NAME].low
        < found[PLAIN_NETSAT_NAME].high - found[PLAIN_NETSAT_NAME].low
    )

    # A user with ten conversations is one user.
    users = make_cross_validation_of_each_model(losses, CALIBRATION_NETWORK_NAME, blocks // 10)
    assert max(score.high - score.low for score in users if score.low is not None) > 0


def test_of_null_models_one_in_twenty_runs_at_most_says_that_one_is_ahead() -> None:
    rng = np.random.default_rng(2)
    told = 0
    for _ in range(100):
        shared = rng.normal(0, 1, (60, 1))
        others = 1 + 0.3 * shared + rng.normal(0, 0.4, (60, 5))
        losses = {CALIBRATION_NETWORK_NAME: np.ones(60)} | {
            str(number): column for number, column in enumerate(others.T)
        }
        told += any(
            score.low is not None and score.low > 0
            for score in make_cross_validation_of_each_model(
                losses, CALIBRATION_NETWORK_NAME, np.arange(60)
            )
        )
    assert told <= 8


def test_the_network_begins_as_the_mean_of_what_it_contains() -> None:
    answers, positive = drawn()
    begun = fit_calibration_model(NETWORK_STARTING_MODEL_NAME, answers, SIGNS, positive)
    network = fit_calibration_model(
        CALIBRATION_NETWORK_NAME, answers, SIGNS, positive, changes={"strengths": (1e7,)}
    )
    members = [member.predict_proba(answers.reshape(60, -1))[:, 1] for member in begun.members_]  # type: ignore[attr-defined]
    odds = np.mean([np.log(p / (1 - p)) for p in members], axis=0)
    assert predict_thumb_up_probability(begun, answers) == pytest.approx(1 / (1 + np.exp(-odds)))
    assert predict_thumb_up_probability(network, answers) == pytest.approx(
        predict_thumb_up_probability(begun, answers), abs=0.01
    )


def test_a_rubric_of_the_wrong_side_costs_little() -> None:
    answers, positive = drawn(1200)
    # two that say nothing more
    answers = np.concatenate([answers, drawn(1200)[0][:, :, ::-1], answers[::-1]], axis=1)
    right = (*SIGNS, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0)
    wrong = (-1.0, *right[1:])
    losses = {}
    for name in (DECORRELATED_NETSAT_NAME, CALIBRATION_NETWORK_NAME):
        for signs in (right, wrong):
            model = fit_calibration_model(name, answers[:200], signs, positive[:200])
            p = predict_thumb_up_probability(model, answers[200:])
            losses[name, signs] = float(-np.log(np.where(positive[200:], p, 1 - p)).mean())
    assert losses[DECORRELATED_NETSAT_NAME, wrong] - losses[DECORRELATED_NETSAT_NAME, right] > 0.02
    assert losses[CALIBRATION_NETWORK_NAME, wrong] - losses[CALIBRATION_NETWORK_NAME, right] < 0.01


def test_candidates_are_found_however_they_are_written_and_asked_the_rubrics_and_not_the_thumb() -> (
    None
):
    assert tuple(make_candidates(SIGNS)) == CALIBRATION_MODEL_NAMES
    written = ("network", "decorrelated-netsat", "NetSAT", "Best")
    assert [find_calibration_model_name(name) for name in written] == [
        CALIBRATION_NETWORK_NAME,
        DECORRELATED_NETSAT_NAME,
        PLAIN_NETSAT_NAME,
        LEAST_LOG_LOSS_CHOICE_NAME,
    ]
    with pytest.raises(WrongUse, match="no model of the probability is called 'forest'"):
        find_calibration_model_name("forest")
    questions = make_thumb_questionnaire(["r1", "r2"])
    assert [scale.question for scale in questions.asked] == ["r1", "r2"]
    assert (questions.main, questions.width) == (THUMB_QUESTION_ID, 10)


@pytest.mark.parametrize("name", CALIBRATION_MODEL_NAMES)
def test_every_candidate_gives_users_their_own_intercept_and_strangers_the_shared_part(
    name: str,
) -> None:
    answers, _ = drawn()
    model = fit_calibration_model(
        name, answers, SIGNS, np.arange(60) % 2 == 0, ["mild", "strict"] * 30
    )
    mild, strict, stranger, nobody = (
        float(predict_thumb_up_probability(model, answers[:1], None if who is None else [who])[0])
        for who in ("mild", "strict", "new", None)
    )
    assert strict < nobody < mild
    assert stranger == nobody
