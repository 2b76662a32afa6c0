"""Tone: form as one number of the probability, by labels that are not a conversation's own."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.signals import WORDING_TONE_FORM
from pollex.calibration.thumbs import Fold, fit_calibration_model, predict_thumb_up_probability
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import Logs
from pollex.errors import BadRubrics
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import compute_auc
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Question
from pollex.rubrics.learning.crossfit import Candidates
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.thumbs import add_tone_to_folds_where_it_helps
from pollex.rubrics.learning.tone import (
    fit_tone_of_run,
    fit_tone_with_cross_fitting,
    measure_tone_features_of_conversations,
)
from pollex.rubrics.rubric import TONE_SOURCE, Rubric
from pollex.rubrics.tone import (
    MAX_STANDARDIZED_VALUE,
    ToneForm,
    ToneRecord,
    ToneScale,
    make_tone_answers,
)
from pollex.runs.roles import make_embedded_judge_record
from pollex.runs.workspace import run_coroutine_to_end

SIZE = 200
RUBRICS = [
    Rubric(id="good", text="It works.", polarity="sat"),
    Rubric(id="bad", text="It fails.", polarity="dsat"),
]
SIGNALS = ("The user shouts.", "The user counts.")
SOUNDS = (True, True)


def shouts(conversations: Sequence[Conversation]) -> Floats:
    """Measure two signals `[conversation, signal]`."""
    return np.array(
        [[one.turns[0].content.count("!"), len(one.turns[0].content)] for one in conversations],
        float,
    )


def planted(up: Bools, loud: Floats) -> tuple[Material, Candidates, list[Fold]]:
    """Conversations with exclamation marks, and folds with rubrics that say nothing."""
    conversations = [
        Conversation(
            id=f"c{number:03}",
            turns=(
                Turn(role="user", content=f"Hello {number}{'!' * int(marks)}"),
                Turn(role="assistant", content="Yes"),
            ),
            label=Label.POSITIVE if one else Label.NEGATIVE,
        )
        for number, (one, marks) in enumerate(zip(up.tolist(), loud.tolist(), strict=True))
    ]
    options = np.random.default_rng(5).integers(0, 5, (len(up), len(RUBRICS)))
    answers = np.eye(5)[options]
    dealt = np.arange(len(up)) % 5
    folds = [Fold(dealt == number, [1.0, -1.0], answers) for number in range(5)]
    pool = Candidates(
        conversations, RUBRICS, 2.5 * options * [1, -1], np.ones(options.shape, dtype=bool), {}
    )
    material = Material(
        logs=Logs(conversations, counts=Counter(one.label for one in conversations)),
        training=tuple(conversations),
        held_out=(),
        settings=LearnSettings(),
        judge_record=make_embedded_judge_record(Embedder()),
        table=GivenAnswers("expected"),
        progress=NullProgress(),
        family_of=name_rubric_family,
        form=ToneForm(SIGNALS, SOUNDS, shouts),
    )
    return material, pool, folds


def found_by(up: Bools, loud: Floats) -> tuple[list[Fold], dict[str, Any], Candidates]:
    material, pool, folds = planted(up, loud)
    return *add_tone_to_folds_where_it_helps(
        material, pool, {"held_out_scores": None}, folds, pool.conversations
    ), pool


def draw(seed: int = 0) -> tuple[Bools, Floats]:
    """Thumbs, and exclamation marks that go along with thumbs down."""
    rng = np.random.default_rng(seed)
    up = rng.random(SIZE) < 0.5
    return up, np.where(up, rng.integers(0, 4, SIZE), rng.integers(2, 6, SIZE)).astype(float)


def test_where_tone_alone_tells_good_from_bad_the_probability_follows_it() -> None:
    up, loud = draw()
    folds, found, _ = found_by(up, loud)
    assert found["weight"] > 0
    assert found["adds"]["low"] > 0
    p = np.zeros(SIZE)
    for fold in folds:
        assert fold.answers.shape == (SIZE, len(RUBRICS) + 1, len(LIKERT_OPTIONS))
        model = fit_calibration_model(
            "NetSAT with learned weights", fold.answers[~fold.out], fold.signs, up[~fold.out]
        )
        p[fold.out] = predict_thumb_up_probability(model, fold.answers[fold.out])
    assert compute_auc(p, up) == pytest.approx(compute_auc(-loud, up), abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_where_it_says_nothing_its_weight_is_0_and_the_line_says_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    folds, found, _ = found_by(rng.random(SIZE) < 0.5, rng.integers(0, 6, SIZE).astype(float))
    assert found["weight"] == 0
    assert {fold.answers.shape[1] for fold in folds} == {len(RUBRICS)}
    told = ToneRecord(weight=0.0, signals=(), adds=Figure(**found["adds"])).told
    assert "the log-loss of probabilities changes by" in told
    assert "no clear difference" in told or "doesn't count" in told


@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_an_interval_with_zero_makes_no_clear_difference_whatever_the_weight(weight: float) -> None:
    adds = Figure(0.02, -0.005, 0.044, 400)
    tone = ToneRecord(weight=weight, signals=("The user agrees.",), adds=adds)
    assert not tone.clear
    assert "makes no clear difference to the probability: " in tone.told
    assert "changes by −0.020 (95 % −0.044 to +0.005; lower is better; n = 400)" in tone.told
    assert "helps" not in tone.told
    lower = tone.model_copy(update={"adds": Figure(0.02, 0.005, 0.044, 400)})
    assert lower.clear
    assert lower.told.endswith("The user agrees.") == bool(weight)
    assert "changes by −0.020 (95 % −0.044 to −0.005; lower is better; n = 400)" in lower.told


def test_with_too_few_labels_to_learn_it_the_line_says_why_there_is_none() -> None:
    up = np.arange(SIZE) == 3
    _, found, _ = found_by(up, np.zeros(SIZE))
    assert found["weight"] == 0
    assert "too few labels" in ToneRecord(weight=0.0, signals=(), adds=Figure(**found["adds"])).told


def test_no_label_teaches_the_tone_of_its_own_conversation() -> None:
    rng = np.random.default_rng(1)
    areas = []
    for _ in range(8):
        features = rng.normal(size=(SIZE, 60))
        up = np.arange(SIZE) % 2 == 0
        fitted = fit_tone_with_cross_fitting(features, up, np.arange(SIZE), 0)
        assert fitted is not None
        areas.append((compute_auc(fitted[1], up), compute_auc(fitted[0].tone(features), up)))
    honest, seen = np.mean(areas, axis=0)
    assert honest == pytest.approx(0.5, abs=0.06)
    assert seen > 0.7, "all of them fit what they saw"


def test_conversations_of_one_user_are_in_one_fold() -> None:
    rng = np.random.default_rng(2)
    users = np.arange(SIZE) // 2
    up = np.repeat(rng.random(SIZE // 2) < 0.5, 2)
    features = np.repeat(rng.normal(size=(SIZE // 2, 60)), 2, axis=0)
    together = fit_tone_with_cross_fitting(features, up, users, 0)
    apart = fit_tone_with_cross_fitting(features, up, np.arange(SIZE), 0)
    assert together is not None
    assert apart is not None
    assert compute_auc(together[1], up) < 0.65 < compute_auc(apart[1], up)


def test_what_was_learned_from_has_its_own_tone_and_others_that_of_all() -> None:
    up, loud = draw()
    material, pool, _ = planted(up, loud)
    tone = fit_tone_of_run(material, pool.conversations[:150])
    assert tone is not None
    tones = tone.of(material, pool.conversations)
    features = measure_tone_features_of_conversations(material, pool.conversations)
    assert tones[:150].tolist() == [tone.own[one.id] for one in pool.conversations[:150]]
    assert np.allclose(tones[150:], tone.scale.tone(features[150:]))


def test_an_answer_rises_with_tone() -> None:
    tones = np.linspace(-MAX_STANDARDIZED_VALUE, MAX_STANDARDIZED_VALUE, 11)
    answers = make_tone_answers(tones, 5)
    assert np.allclose(answers.sum(axis=-1), 1)
    assert (np.diff(answers @ np.arange(5)) > 0).all()


def test_the_built_in_judge_answers_it_by_the_learned_scale_and_reads_no_vectors() -> None:
    about = Conversation(
        id="a",
        turns=(
            Turn(role="user", content="Thanks, great!"),
            Turn(role="assistant", content="You are welcome."),
        ),
    )
    slopes = np.random.default_rng(0).normal(size=4 * len(WORDING_TONE_FORM.signals))
    scale = ToneScale(slopes, 0.25)
    record = ToneRecord(
        weight=1.0, signals=(), adds=Figure(0.1, 0.0, 0.2, n=9), learned=scale.to_json()
    )
    judge = EmbeddedJudge(Embedder(), {TONE_SOURCE: record.learned})
    (answer,) = run_coroutine_to_end(judge.judge(about, [Question.about(record.rubric)]))
    assert isinstance(answer, Answer)
    assert answer.probabilities == pytest.approx(
        make_tone_answers(scale.tone(WORDING_TONE_FORM.measure([about])[0]), 5)
    )
    with pytest.raises(BadRubrics, match="slopes"):
        EmbeddedJudge(Embedder(), {TONE_SOURCE: {"slopes": [1.0], "offset": 0.0}})


def test_only_how_people_sound_is_named_in_tone_and_deeds_are_left_to_rubrics() -> None:
    sounds = dict(zip(WORDING_TONE_FORM.signals, WORDING_TONE_FORM.sounds, strict=True))
    assert not sounds["The assistant gives a negative answer."]
    assert not sounds["The assistant apologises."]
    assert sounds["The assistant offers further help."]
