"""Options of a model where no model, or another judge, would heed them: refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex.cli.commands.learn import command as learn
from pollex.cli.options import ASKED, CALLED, EMBEDDING
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric_set import RubricSet

PLACE = "https://api.openai.com/v1"


@pytest.fixture
def of_a_model(learnt: Learnt, tmp_path: Path) -> Path:
    """A rubric set whose judge is a model."""
    options = {"place": PLACE, "samples": 2, "elicitation": "batched"}
    judge = JudgeRecord(kind="llm", name="m", fingerprint="", options=options)
    RubricSet.load(learnt.rubrics).model_copy(update={"judge": judge}).save(tmp_path / "of-a-model.json")
    return tmp_path / "of-a-model.json"


def test_every_option_of_a_model_is_known_to_be_refused_where_it_does_nothing() -> None:
    about = {"model", "langsmith", EMBEDDING}  # LangSmith traces the embedded roles' graphs, too
    others = {"logs", "out", "domain", "test_fraction", "budget", "method", "scale", "rubrics_from", "policy", "alpha"}
    others |= {"seed", "store", "as_json", "resume", "dry_run", "id_field", "label_field", "judge_field", "group_field"}
    others |= {"messages_field", "positive", "negative", "max_bad", "encoding", "on_duplicate"}
    assert {one.name for one in learn.params} == {*ASKED, *CALLED} | about | others


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn", "log.jsonl", "--elicitation", "independent", "--samples", "5"), "--elicitation, --samples without"),
        (("learn", "log.jsonl", "--no-canary"), "--no-canary without a model"),
        (("learn", "log.jsonl", "--max-calls", "5", "--dry-run"), "--max-calls without a model"),
        (("learn", "log.jsonl", "--base-url", "http://localhost:1/v1"), "--base-url without a model"),
    ],
)
def test_what_only_a_model_would_heed_is_refused_where_none_is_named(
    pollex: Pollex, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    write_log(tmp_path / "log.jsonl", small_log())
    ended = pollex(*arguments, "--store", tmp_path / "none")
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert "name one: --model" in ended.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("verb", [("score",), ("evaluate",), ("refit",), ("label", "next")], ids=" ".join)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--elicitation", "independent", "--samples", "5"), "--elicitation, --samples: the embedded judge"),
        (("--without", "ds", "--dry-run"), "--without: the embedded judge"),
        (("--base-url", "http://localhost:1/v1"), "--base-url: the embedded judge"),
        (("--embedding-model", "another"), "--embedding-model: the embedded judge"),
    ],
)
def test_the_embedded_judge_of_a_set_is_told_nothing_that_it_would_pass_over(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, verb: tuple[str, ...], options: tuple[str, ...], said: str
) -> None:
    ended = pollex(*verb, learnt.log, "--rubrics", learnt.rubrics, *options, "--store", tmp_path / "none")
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert "pollex refit … --model" in ended.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("verb", [("score",), ("evaluate",), ("refit",), ("label", "next")], ids=" ".join)
@pytest.mark.parametrize("plan", [(), ("--dry-run",)], ids=["run", "plan"])
def test_an_embedding_model_that_a_set_names_is_not_loaded_before_the_user_names_it_too(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, verb: tuple[str, ...], plan: tuple[str, ...]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{broken")
    found = RubricSet.load(learnt.rubrics)
    judge = found.judge.model_copy(update={"options": {"embedding_model": "./model"}})
    found.model_copy(update={"judge": judge}).save(tmp_path / "theirs.json")
    arguments = (*verb, learnt.log, "--rubrics", "theirs.json", *plan, "--store", tmp_path / "new")
    for others in ((), ("--embedding-model", "all-MiniLM-L6-v2")):
        ended = pollex(*arguments, *others)
        assert ended.code == 2, ended.err
    ended = pollex(*arguments)
    assert "the rubric set's judge embeds with './model'" in ended.err
    assert "confirm it: --embedding-model ./model" in ended.err
    confirmed = pollex(*arguments, "--embedding-model", "./model")
    assert (confirmed.code, "can't be loaded" in confirmed.err) == ((0, False) if plan else (1, True)), confirmed.err


@pytest.mark.parametrize("verb", [("score",), ("evaluate",), ("refit",), ("label", "next")], ids=" ".join)
def test_the_model_of_a_set_is_asked_as_it_was_and_otherwise_only_called(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, of_a_model: Path, verb: tuple[str, ...]
) -> None:
    arguments = [*verb, learnt.log, "--rubrics", of_a_model, "--dry-run", "--store", tmp_path / "none"]
    ended = pollex(*arguments, "--samples", 5, "--value", "mode", "--concurrency", 4)
    assert ended.code == 2
    assert "--samples, --value: the judge m answers as it did when θ was fitted" in ended.err
    assert pollex(*arguments, "--concurrency", 4, "--require", "logprobs", "--price-in", 1, "--price-out", 1).code == 0


def test_a_refit_with_another_model_asks_it_as_the_command_line_says(
    pollex: Pollex, tmp_path: Path, learnt: Learnt
) -> None:
    asked = ("refit", learnt.log, "--rubrics", learnt.rubrics, "--model", "m", "--dry-run", "--json")
    found = [
        pollex(*asked, "--elicitation", how, "--store", tmp_path / "none").last["plan"]["judge"]["calls"]
        for how in ("batched", "independent")
    ]
    assert found[0] < found[1]


def test_a_calibrator_of_answers_is_given_no_options_of_logs_runs_or_models(pollex: Pollex) -> None:
    given = ("--calibrator", "calibrator", "answers.csv", "--label-field", "thumb", "--model", "m", "--dry-run")
    ended = pollex("label", "next", *given)
    assert ended.code == 2
    assert "--label-field, --model, --dry-run and --calibrator don't go together" in ended.err
