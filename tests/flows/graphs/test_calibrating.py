"""The calibrator in a rubric set: kept beside it, checked when read, asked for judges."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_judges import with_judges
from small_runs import Learnt

from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import BadCalibrator, BadRubrics, WrongUse
from pollex.outputs import write_file
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.edits import get_edits_path
from pollex.rubrics.learning.thumbs import collect_grades_of_conversations
from pollex.rubrics.rubric_set import RubricSet, get_arrays_path
from pollex.rubrics.score import compute_binary_entropy, list_requested_judges
from pollex.rubrics.worth import measure_probability_quality


@pytest.fixture(scope="module")
def rubrics(learnt: Learnt) -> RubricSet:
    return RubricSet.load(learnt.rubrics)


@pytest.fixture(scope="module")
def of_two(rubrics: RubricSet) -> RubricSet:
    return with_judges(rubrics, ["anna", "ben"])


@pytest.fixture
def saved(rubrics: RubricSet, tmp_path: Path) -> Path:
    rubrics.save(tmp_path / "rubrics.json")
    return tmp_path / "rubrics.json"


def arrays_of(saved: Path) -> Path:
    (found,) = saved.parent.glob("rubrics-*.safetensors")
    return found


def change(saved: Path, *place: Any, to: Any) -> None:
    whole = part = json.loads(saved.read_text("utf-8"))
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = to
    saved.write_text(json.dumps(whole), "utf-8")


def test_arrays_that_are_missing_or_of_another_fit_are_refused_with_what_to_do(saved: Path) -> None:
    arrays = arrays_of(saved)
    kept = arrays.read_bytes()
    arrays.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    with pytest.raises(BadCalibrator, match="not the ones that were written with the rubric set"):
        RubricSet.load(saved)
    arrays.unlink()
    with pytest.raises(
        BadCalibrator,
        match=r"rubrics-[0-9a-f]{8}\.safetensors.*can't be read.*put .* under this name, or fit it again",
    ):
        RubricSet.load(saved)
    assert RubricSet.load(saved, arrays=False).rubrics  # enough for a refit


def test_facts_that_were_tampered_with_are_refused(saved: Path) -> None:
    for digest in (None, 3, "../../etc/passwd", "ABCDEF01"):
        kept = saved.read_bytes()
        change(saved, "calibrator", "facts", "arrays_sha256", to=digest)
        with pytest.raises(BadCalibrator, match=r"no hash.*fit it again"):
            RubricSet.load(saved)
        saved.write_bytes(kept)
    change(saved, "calibrator", "facts", "model", to="os")
    with pytest.raises(BadCalibrator, match="no calibrator is called 'os'"):
        RubricSet.load(saved).scorer_of()


def test_a_kill_before_the_json_leaves_the_old_set_with_its_arrays(
    of_two: RubricSet, saved: Path
) -> None:
    before = RubricSet.load(saved)
    assert of_two.calibrator is not None
    # all that is written before the JSON
    write_file(get_arrays_path(saved, of_two.calibrator.facts), of_two._arrays)
    assert RubricSet.load(saved) == before
    assert RubricSet.load(saved).scorer_of()
    before.save(saved.with_name("rubrics-old.json"))
    of_two.save(saved)
    assert RubricSet.load(saved) == of_two
    assert RubricSet.load(saved.with_name("rubrics-old.json")) == before, (
        "its arrays are left alone"
    )


def test_an_edited_set_is_read_without_its_arrays_and_asks_for_a_refit(saved: Path) -> None:
    change(saved, "rubrics", 0, "text", to="The user laughs out loud.")
    get_edits_path(saved).unlink()
    arrays_of(saved).unlink()
    with pytest.raises(BadRubrics, match="edited after"):
        RubricSet.load(saved).require_unedited()


def test_a_set_of_format_1_is_scored_with_its_curve(saved: Path) -> None:
    stored = json.loads(saved.read_text("utf-8"))
    del stored["calibrator"]
    saved.write_text(json.dumps(stored | {"format": 1}), "utf-8")
    rubrics = RubricSet.load(saved)
    score = rubrics.scorer_of().read("c", 3.0)
    curve = 1 / (1 + math.exp(-(rubrics.calibration.intercept + 3 * rubrics.calibration.slope)))
    assert score.probability == pytest.approx(curve)
    assert score.entropy == pytest.approx(compute_binary_entropy(curve))
    with pytest.raises(WrongUse, match="has no annotators"):
        list_requested_judges(rubrics.thumb_model, ["anna"])


def test_a_set_that_was_saved_and_loaded_gives_the_same_probabilities(
    rubrics: RubricSet, saved: Path
) -> None:
    one = rubrics.thumb_model
    other = RubricSet.load(saved).thumb_model
    assert one is not None
    assert other is not None
    answers = np.random.default_rng(0).dirichlet(np.ones(5), (3, len(one.rubrics)))
    assert (one.probability(answers) == other.probability(answers)).all()
    assert not list(saved.parent.glob(".*"))  # no draft is left


def test_judges_that_nobody_knows_are_refused_with_those_who_are_known(
    rubrics: RubricSet, of_two: RubricSet
) -> None:
    model = of_two.thumb_model
    assert model is not None
    with pytest.raises(WrongUse, match=r"'carl' was learned from.*anna, ben"):
        model.wanted(["anna", "carl"])
    assert model.wanted(["ben", "ben"]) == ("ben",)
    assert model.wanted(["all"]) == ("anna", "ben")
    with pytest.raises(WrongUse, match="judge_field='user'"):
        list_requested_judges(rubrics.thumb_model, ["anna"])


def test_a_score_has_a_probability_for_each_judge_asked_for_and_its_entropy(
    of_two: RubricSet,
) -> None:
    netsat = of_two.scorer_of()
    agreed = {"probabilities": (0.0, 0.0, 0.2, 0.8, 0.0), "chosen": 3, "source": "logprobs"}
    answers = [Answer.model_validate({"question_id": id_, **agreed}) for id_ in netsat.signs]
    score = netsat.score_all({"c": answers}, ["anna", "ben"])[0]
    assert score.probability is not None
    assert score.judges["anna"] < score.probability < score.judges["ben"]
    p = score.probability
    assert score.entropy == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p))
    assert [compute_binary_entropy(p) for p in (0.0, 1.0, 0.5)] == pytest.approx(
        [0, 0, math.log(2)]
    )
    failed = Unanswered(question_id=answers[0].question_id, outcome="error")
    none = netsat.score_all({"c": [failed, *answers[1:]]}, ["anna"])[0]
    assert (none.probability, none.entropy, none.judges) == (None, None, {})


def test_figures_of_probabilities_by_hand() -> None:
    positive = np.array([True, False])
    blocks = np.arange(2)
    found = measure_probability_quality(
        np.array([0.8, 0.4]), positive, 0.75, np.random.default_rng(0), blocks
    )
    assert found.log_loss.value == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    assert found.brier.value == pytest.approx((0.2**2 + 0.4**2) / 2)
    assert found.share_log_loss.value == pytest.approx(-(math.log(0.75) + math.log(0.25)) / 2)
    assert found.share_brier.value == pytest.approx((0.25**2 + 0.75**2) / 2)
    assert found.gain.value == pytest.approx(found.share_log_loss.value - found.log_loss.value)
    assert found.smece is None
    never = measure_probability_quality(
        np.array([0.0, 0.4]), positive, 0.5, np.random.default_rng(0), blocks
    ).log_loss
    assert (never.value, never.undefined) == (None, "1 given thumbs had probability 0")


def test_probabilities_of_conversations_that_go_together_are_measured_together() -> None:
    rng = np.random.default_rng(1)
    copied = np.repeat(np.arange(30), 3)
    probability = rng.random(30)
    positive = rng.random(30) < 0.5
    one = measure_probability_quality(
        probability, positive, 0.5, np.random.default_rng(0), np.arange(30)
    )
    three = measure_probability_quality(
        probability[copied], positive[copied], 0.5, np.random.default_rng(0), copied
    )
    assert (three.n, three.log_loss.n) == (90, 90)
    assert (three.gain.low, three.gain.high) == pytest.approx((one.gain.low, one.gain.high))


def test_too_few_labels_are_told_and_how_many_are_missing(rubrics: RubricSet) -> None:
    assert rubrics.calibrator is not None
    labels = rubrics.calibrator.labels
    assert labels == rubrics.data.training < 50
    said = f"{labels} of 50 labels, {50 - labels} are missing"
    assert any(said in note for note in rubrics.notes)
    assert said in str(rubrics.support)
    enough = rubrics.calibrator.model_copy(update={"labels": 50})
    assert (
        str(rubrics.model_copy(update={"calibrator": enough}).support) == "calibrated on 50 labels"
    )


def test_two_numbers_of_a_label_field_are_thumbs_and_no_grades() -> None:
    def told(*values: float) -> list[Conversation]:
        turns = (Turn(role="user", content="Hello"),)
        return [
            Conversation(id=str(n), turns=turns, metadata={"rating": one})
            for n, one in enumerate(values)
        ]

    assert collect_grades_of_conversations(told(1, -1, 1), ["rating"])[1] == []
    assert [
        scale.values for scale in collect_grades_of_conversations(told(1, 2, 4), ["rating"])[1]
    ] == [(1.0, 2.0, 4.0)]
