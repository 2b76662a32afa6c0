"""A model's rubrics, learned from its paid answers and answered without it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from small_runs import Learnt, Pollex, run_here

import pollex as pollex_api
from pollex.errors import WrongUse
from pollex.rubrics.rubric_set import RubricSet


@pytest.fixture(scope="module")
def asked(
    learnt: Learnt, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Path, str]]:
    """A set whose answers a model gave, its store, and where the model is."""
    folder = tmp_path_factory.mktemp("asked")
    with ProtocolServer(script=[{"do": "attentive"}]) as server:
        given = (
            "--rubrics-from",
            "generic",
            "--out",
            folder / "llm.json",
            "--store",
            folder / "s",
            "--model",
            "m",
        )
        assert run_here("learn", learnt.log, *given, "--base-url", server.url).code == 0
        yield folder / "llm.json", folder / "s", server.url


@pytest.mark.nightly
def test_a_set_is_distilled_from_paid_answers_and_scores_without_a_call(
    pollex: Pollex, learnt: Learnt, asked: tuple[Path, Path, str]
) -> None:
    llm, store, place = asked
    url = ("--base-url", place)
    distilling = (
        "distill",
        learnt.log,
        "--rubrics",
        llm,
        "--store",
        store,
        "--json",
        "--out",
        "distilled.json",
        *url,
    )
    none = pollex(*distilling, "--least", 2)
    assert (none.code, "no rubric can be answered without the model" in none.err) == (2, True)
    ended = pollex(*distilling, "--least", -1)
    assert ended.code == 0, ended.err
    told = ended.last
    assert told["n"] == 48
    assert all(
        -1 <= row["correlation"]["value"] <= 1
        for row in told["fidelity"]
        if row["by"] == "distilled"
    )
    assert told["auc"]["model"]["n"] == told["auc"]["distilled"]["n"] == 24
    assert [row["asked"] for row in told["cascade"]] == [0.0, 0.1, 0.2, 0.3, 0.5, 1.0]
    assert told["calls_a_conversation"]["now"] == 0
    found = RubricSet.load("distilled.json")
    assert {rubric.answered_by for rubric in found.rubrics} == {"distilled"}
    assert {rubric.alone.by for rubric in found.rubrics if rubric.alone} == {"distilled"}
    scoring = ("score", learnt.log, "--rubrics", "distilled.json", "--json")
    scored = pollex(*scoring, "--store", "t", "--out", "s.jsonl")
    assert scored.code == 0, scored.err  # no address is named
    assert "usage" not in scored.last
    cascade = pollex(
        *scoring, "--set", f"cascade={llm}", "--store", store, "--out", "c.jsonl", *url
    )
    assert cascade.code == 0, cascade.err
    rows = [json.loads(line) for line in Path("c.jsonl").read_text(encoding="utf-8").splitlines()]
    assert cascade.last["asked"] == sum(row["judge"] == "m" for row in rows) > 0
    assert all(row["confident"] for row in rows if row["judge"] != "m")


@pytest.mark.nightly
def test_figures_of_a_distilled_set_are_those_of_conversations_that_it_was_not_fitted_to(
    pollex: Pollex, learnt: Learnt, asked: tuple[Path, Path, str]
) -> None:
    path, store, place = asked
    llm = RubricSet.load(path)
    dealt_otherwise = llm.model_copy(update={"data": llm.data.model_copy(update={"seed": 1})})
    gone = llm.model_copy(update={"run": "learn-99-ffff"})
    same, fewer, elsewhere = (
        pollex_api.distill(learnt.log, one, least=-1, store=store, base_url=place)
        for one in (path, dealt_otherwise, gone)
    )
    assert repr(same).startswith("<Distill: 48 conversations, mean correlation ")
    assert repr(same).endswith("→ 0 calls a conversation>")
    # NetSAT is fitted to nothing; p is that of folds
    assert fewer.auc["model"].n == fewer.log_loss["model"].n == 24
    assert elsewhere.auc["model"].n == 24
    assert elsewhere.log_loss["model"].n == 0  # nothing of the run that fitted the set is there
    given = (
        "--least",
        2,
        "--hard",
        "model",
        "--out",
        "left.json",
        "--base-url",
        place,
        "--store",
        store,
    )
    left = pollex("distill", learnt.log, "--rubrics", path, *given)
    assert left.code == 0, left.err
    assert {rubric.answered_by for rubric in RubricSet.load("left.json").rubrics} == {""}


def test_what_no_model_answered_is_not_distilled(pollex: Pollex, learnt: Learnt) -> None:
    refused = pollex("distill", learnt.log, "--rubrics", learnt.rubrics, "--store", "s")
    assert (refused.code, "only answers of a model" in refused.err) == (2, True)
    with pytest.raises(WrongUse, match="only answers of a model"):
        pollex_api.distill(learnt.log, learnt.rubrics, store="s")
