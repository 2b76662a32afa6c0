"""A model's rubrics, learned from its paid answers and answered without it."""

import json
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from small_runs import Learnt, Pollex

import pollex as pollex_api
from pollex.errors import WrongUse
from pollex.rubrics.rubric_set import RubricSet


def test_a_set_is_distilled_from_paid_answers_and_scores_without_a_call(pollex: Pollex, learnt: Learnt) -> None:
    with ProtocolServer(script=[{"do": "attentive"}]) as server:
        url = ("--base-url", server.url)
        given = ("--rubrics-from", "generic", "--out", "llm.json", "--store", "s", "--model", "m")
        assert pollex("learn", learnt.log, *given, *url).code == 0
        distilling = ("distill", learnt.log, "--rubrics", "llm.json", "--store", "s", "--json", *url)
        none = pollex(*distilling, "--least", 2)
        assert (none.code, "no rubric can be answered without the model" in none.err) == (2, True)
        left = pollex(*distilling, "--least", 2, "--hard", "model", "--out", "left.json")
        assert left.code == 0, left.err
        assert {rubric.answered_by for rubric in RubricSet.load("left.json").rubrics} == {""}
        ended = pollex(*distilling, "--least", -1)
        same = pollex_api.distill(learnt.log, "llm.json", least=-1, store="s", base_url=server.url)
        llm = RubricSet.load("llm.json")
        dealt_otherwise = llm.model_copy(update={"data": llm.data.model_copy(update={"seed": 1})})
        fewer = pollex_api.distill(learnt.log, dealt_otherwise, least=-1, store="s", base_url=server.url)
        gone = llm.model_copy(update={"run": "learn-99-ffff"})
        elsewhere = pollex_api.distill(learnt.log, gone, least=-1, store="s", base_url=server.url)
        cascade = ("score", learnt.log, "--rubrics", "distilled.json", "--set", "cascade=llm.json", "--store", "s")
        asked = pollex(*cascade, "--out", "c.jsonl", "--json", *url)
        rows = [json.loads(line) for line in Path("c.jsonl").read_text(encoding="utf-8").splitlines()]
    assert ended.code == 0, ended.err
    assert asked.code == 0, asked.err
    assert asked.last["asked"] == sum(row["judge"] == "m" for row in rows) > 0
    assert all(row["confident"] for row in rows if row["judge"] != "m")
    told = ended.last
    assert told["n"] == 48
    assert all(-1 <= row["correlation"]["value"] <= 1 for row in told["fidelity"] if row["by"] == "distilled")
    assert told["auc"]["model"]["n"] == told["auc"]["distilled"]["n"] == 24
    assert fewer.auc["model"].n == fewer.log_loss["model"].n == 24  # NetSAT is fitted to nothing; p is that of folds
    assert elsewhere.auc["model"].n == 24
    assert elsewhere.log_loss["model"].n == 0  # nothing of the run that fitted the set is there
    assert [row["asked"] for row in told["cascade"]] == [0.0, 0.1, 0.2, 0.3, 0.5, 1.0]
    assert told["calls_a_conversation"]["now"] == 0
    assert repr(same).startswith("<Distill: 48 conversations, mean correlation ")
    assert repr(same).endswith("→ 0 calls a conversation>")
    assert [row["correlation"] for row in same.records()] == [row["correlation"]["value"] for row in told["fidelity"]]
    assert same.rubrics.rubrics_digest == RubricSet.load("distilled.json").rubrics_digest
    found = RubricSet.load("distilled.json")
    assert {rubric.answered_by for rubric in found.rubrics} == {"distilled"}
    assert {rubric.alone.by for rubric in found.rubrics if rubric.alone} == {"distilled"}
    scored = pollex("score", learnt.log, "--rubrics", "distilled.json", "--store", "t", "--out", "s.jsonl", "--json")
    assert scored.code == 0, scored.err  # the server is gone
    assert "usage" not in scored.last


def test_what_no_model_answered_is_not_distilled(pollex: Pollex, learnt: Learnt) -> None:
    refused = pollex("distill", learnt.log, "--rubrics", learnt.rubrics, "--store", "s")
    assert (refused.code, "only answers of a model" in refused.err) == (2, True)
    with pytest.raises(WrongUse, match="only answers of a model"):
        pollex_api.distill(learnt.log, learnt.rubrics, store="s")
