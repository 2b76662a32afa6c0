"""Tone from learning to scoring: the same whole and one by one, kept in the store, and listed as one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_runs import Learnt, Pollex

from pollex.agents.embedded.signals import WORDING_TONE_FORM
from pollex.formats.read_logs import read_logs
from pollex.rubrics.rubric import TONE_SOURCE
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.tone import ToneScale, make_tone_answers
from pollex.services.scorer import Scorer
from pollex.store.resume import iterate_scores, read_answers
from pollex.store.store import Store


def test_the_tone_of_a_score_is_that_of_its_text_and_the_store_gives_the_same_probability(
    learnt: Learnt, pollex: Pollex
) -> None:
    rubrics = RubricSet.load(learnt.rubrics)
    logs = read_logs([learnt.log])
    assert rubrics.tone is not None
    assert rubrics.tone.weight > 0, "this log's thumbs go along with thanks"
    assert rubrics.calibrator is not None
    assert (
        rubrics.calibrator.rubrics[-1]
        == TONE_SOURCE
        not in {rubric.id for rubric in rubrics.rubrics}
    )

    # Scored in a run, and read from the store again.
    done = pollex(
        "score",
        learnt.log,
        "--rubrics",
        learnt.rubrics,
        "--store",
        "s",
        "--out",
        "scores.jsonl",
        "--json",
    )
    assert done.code == 0, done.err
    with Store.open(Path("s"), read_only=True) as store:
        run = json.loads(done.out)["run"]
        kept = read_answers(store, run)
        (again,) = iterate_scores(store, run, rubrics, logs.conversations)

    # One by one.
    scale = ToneScale.from_json(rubrics.tone.learned, 4 * len(WORDING_TONE_FORM.signals))
    alone = Scorer(rubrics)
    for one, score in zip(list(logs)[:6], again, strict=False):
        p = make_tone_answers(scale.tone(WORDING_TONE_FORM.measure([one])[0]), 5)
        assert np.allclose(kept[one.id][TONE_SOURCE].probabilities, p)  # type: ignore[union-attr]  # it is an answer
        assert alone.score(one).probability == pytest.approx(score.probability, abs=1e-9)
        assert TONE_SOURCE not in {answer.question_id for answer in score.answers}


def test_tone_is_one_line_of_the_report_of_a_list_and_of_why(
    learnt: Learnt, pollex: Pollex
) -> None:
    tone = RubricSet.load(learnt.rubrics, arrays=False).tone
    assert tone is not None
    assert "log-loss of probabilities" in tone.told
    assert pollex("rubrics", "list", learnt.rubrics).out.count("Tone (") == 1
    assert "Tone (" in pollex("why", learnt.rubrics, TONE_SOURCE, "--store", learnt.store).out
    assert (learnt.rubrics.parent / "report.html").read_text("utf-8").count("Tone (") == 1


def test_a_set_without_tone_asks_for_none(learnt: Learnt) -> None:
    rubrics = RubricSet.load(learnt.rubrics).model_copy(update={"tone": None})
    assert rubrics.asked_judge is rubrics.judge
    assert {rubric.id for rubric in rubrics.all_rubrics} == {
        rubric.id for rubric in rubrics.rubrics
    }
