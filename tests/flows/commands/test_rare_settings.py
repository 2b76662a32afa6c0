"""`--set NAME=VALUE`: rare settings in their types, by the names that a verb heeds; help with and without them."""

from pathlib import Path

import pytest
from small_runs import Learnt, Pollex

from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric_set import RubricSet


def test_help_shows_groups_and_help_all_the_settings_too(pollex: Pollex) -> None:
    few, every = pollex("learn", "--help").out, pollex("learn", "--help-all").out
    assert all(f"\n{title}:" in few for title in ("Data", "Rubrics", "Model", "Limits", "Output"))
    assert "on_duplicate" in every
    assert "on_duplicate" not in few


def test_a_verb_in_a_group_shows_its_settings_too(pollex: Pollex) -> None:
    assert "\n  recipe " in pollex("calibrate", "fit", "--help-all").out


@pytest.mark.nightly
def test_a_setting_counts(pollex: Pollex, learnt: Learnt, store: Path) -> None:
    assert pollex("learn", learnt.log, "--set", "policy=greedy", "--set", "alpha=1", "--store", store).code == 0
    found = RubricSet.load("rubrics.json")
    assert (found.policy, found.alpha) == ("greedy", 1.0)


@pytest.mark.parametrize("verb", [("score",), ("evaluate",), ("refit",), ("label", "next")], ids=" ".join)
@pytest.mark.parametrize("plan", [(), ("--dry-run",)], ids=["run", "plan"])
def test_an_embedding_model_that_a_set_names_is_not_loaded_before_the_user_names_it_too(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, verb: tuple[str, ...], plan: tuple[str, ...]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{broken")
    rubrics = RubricSet.load(learnt.rubrics)
    judge = rubrics.judge.model_copy(update={"options": JudgeSettings(embedding_model="./model")})
    rubrics.model_copy(update={"judge": judge}).save(tmp_path / "theirs.json")
    arguments = (*verb, learnt.log, "--rubrics", "theirs.json", *plan, "--store", tmp_path / "new")
    ended = pollex(*arguments)
    assert (ended.code, "the rubric set's judge embeds with './model'" in ended.err) == (2, True), ended.err
    confirmed = pollex(*arguments, "--set", "embedding_model=./model")
    reads_vectors = verb == ("label", "next") and not plan  # the set's rubrics read none
    found = confirmed.code, "can't be loaded" in confirmed.err
    assert found == ((1, True) if reads_vectors else (0, False)), confirmed.err


def test_a_rubric_set_that_a_person_edited_is_not_overwritten(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    text = learnt.rubrics.read_text(encoding="utf-8")
    first = RubricSet.load(learnt.rubrics).rubrics[0].text
    mine.write_text(text.replace(f'"text": "{first}"', '"text": "A person wrote this."', 1), encoding="utf-8")
    before = mine.read_bytes()
    ended = pollex("learn", learnt.log, "--out", mine, "--store", tmp_path / "none")
    assert ended.code == 2
    assert "a person edited this rubric set" in ended.err
    assert "pollex refit" in ended.err
    assert mine.read_bytes() == before
    assert not (tmp_path / "none").exists()
