"""The state of a graph says what was found: first results, the worst, means; and stays small."""

import asyncio
import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from rubric_set_by_hand import (
    model_that_goes_by_the_second_rubric,
    point_answer,
    rubric,
    rubric_set,
)
from small_runs import Learnt, Pollex

from pollex.graphs.findings import MAX_RESULTS_SHOWN, MAX_WORST_RESULTS_SHOWN, Findings
from pollex.graphs.run import get_last_state_after_node
from pollex.graphs.score import describe_rubric_contributions
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.state_told import describe_state
from pollex.store.resume import find_run
from pollex.store.store import Store

LARGEST = 200_000
"""Bytes of a checkpoint."""


def test_a_state_of_learn_tells_who_answers_what_rubrics_weigh_and_the_threshold(
    learnt: Learnt,
) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        state = asyncio.run(get_last_state_after_node(store, find_run(store, "learn"), "assess"))
    ids = {row["id"] for row in state["kept"]}
    assert state["judged_by"].keys() == ids
    assert state["pooled"].keys() == ids
    assert state["learned"].keys() <= ids
    assert {"lower", "upper", "precision"} == state["window"].keys()
    assert isinstance(state["theta"], float)
    assert state["model"]["λ"] > 0, "the network's"
    weights = {row["id"]: row["log_odds"] for row in state["model"]["weights"]}
    assert weights.keys() - {"tone"} == {row["id"] for row in state["chosen"]}
    assert any(weights.values())
    assert any(row["quotes"] for row in state["reasons"]["dsat"]["first"])
    assert len(json.dumps(state)) < LARGEST


def test_each_node_says_on_a_screen_what_it_found_in_words_and_where_all_of_it_is(
    learnt: Learnt, pollex: Pollex
) -> None:
    found = {
        "extract": ["reasons, sat", "reasons, dsat"],
        "deduplicate": ["kept ("],
        "fit_judge": ["judged_by", "learned ("],
        "judge_pool": ["pooled (", "mean "],
        "select": ["chosen (", "dropped (", "why "],
        "calibrate": ["probability, compared ("],
        "assess": ["theta: ", "window: ", "model, weights (", "log_odds", "auc: "],
    }
    texts = [rubric.text for rubric in RubricSet.load(learnt.rubrics).rubrics]
    for node, parts in found.items():
        told = pollex("trace", "learn", "--state", node, "--store", learnt.store).out
        lines = told.splitlines()
        assert len(lines) <= 45, node
        assert all(len(line) <= 118 for line in lines)
        assert all(part in told for part in parts), (node, told)
        assert lines[-1].startswith("All of it, as JSON: pollex trace learn-1")
        if node in ("select", "assess"):
            assert any(text[:60] in told for text in texts)


def test_what_a_state_says_forges_no_line_and_ids_of_rubrics_are_told_by_their_texts() -> None:
    state = {
        "kept": [{"id": "r1", "text": "The user\nsays \x1b[2Jyes.", "polarity": "sat"}],
        "pooled": {"r1": {"mean": 2.5, "answered": 1.0}},
        "judged_by": {"r1": "m"},
        "figures": {"auc": {"value": 0.71, "low": 0.6, "high": 0.8, "n": 40}},
        "empty": {},
    }
    lines = list(describe_state("learn-1", "assess", state, {}))
    assert not any("\x1b" in str(line) or "\n" in str(line) for line in lines)
    assert "  auc: 0.71 [0.6, 0.8], n = 40" in lines
    assert any(
        str(line).startswith("  The user says") and "mean 2.5" in str(line) for line in lines
    )
    assert "judged_by: 1 m" in lines
    assert "none: empty" in lines


def test_a_long_row_is_wrapped_and_says_why_and_what_was_decided_before_all_else() -> None:
    row = {
        "id": "c1",
        "diff": "+" * 500,
        "answers": {f"q{place}": place for place in range(20)},
        "verdict": "good",
        "why": "because " * 20 + "so",
    }
    state = {"first": [row], "finding": {"value": 0.5, "low": 0.2, "high": 0.8, "n": 0, "users": 7}}
    lines = [str(line) for line in describe_state("judge-1", "ask_runs", state, {})]
    shown = " ".join(" ".join(lines).split())
    assert shown.index("because so") < shown.index("verdict good") < shown.index("20 values")
    assert "+++" not in shown.partition("20 values")[0], "long texts come last"
    assert "0.5 [0.2, 0.8], 7 users" in shown
    assert all(len(line) <= 118 for line in lines)
    assert "One of them whole: pollex trace judge-1 --conversation c1" in lines


def test_a_wrong_node_is_answered_with_the_nodes_that_ran_and_those_that_did_not(
    learnt: Learnt, pollex: Pollex
) -> None:
    ended = pollex("trace", "learn", "--state", "nowhere", "--store", learnt.store)
    assert ended.code == 2
    assert "name one of its nodes: " in ended.err
    for name in ("extract", "select", "assess"):
        assert name in ended.err


@pytest.mark.parametrize("module", ["learn.graph", "learn.spur", "learn.refit", "score"])
def test_help_names_the_nodes_of_each_graph(module: str, pollex: Pollex) -> None:
    nodes = set(import_module(f"pollex.graphs.{module}").build().nodes)
    words = set(pollex("trace", "--help").out.replace(",", " ").split())
    assert nodes <= words


def test_json_of_a_view_is_all_that_is_printed(learnt: Learnt, pollex: Pollex) -> None:
    ended = pollex("trace", "learn", "--state", "select", "--store", learnt.store, "--json")
    assert ended.err == ""
    assert json.loads(ended.out)["chosen"]


def test_a_score_is_explained_by_the_answers_that_moved_it_most_and_the_way_they_point() -> None:
    by_hand = rubric_set(rubrics=(rubric(1, "sat"), rubric(2, "dsat")))
    sat, dsat = by_hand.rubrics
    # the model learned that both speak for a thumb up where they hold, the first one hardly
    netsat = replace(by_hand.explainer, thumb_model=model_that_goes_by_the_second_rubric())
    answers = [point_answer(sat.id, 4), point_answer(dsat.id, 0)]
    rubrics = {rubric.id: rubric for rubric in by_hand.rubrics}

    lowered = describe_rubric_contributions(answers, rubrics, netsat, raised=False)
    assert re.match(rf"DSAT not so \(0.0 of 10, P\(up\) -0.[2-9]\d\): {dsat.text}", lowered)
    raised = describe_rubric_contributions(answers, rubrics, netsat, raised=True)
    assert dsat.text not in raised


def test_a_state_of_score_tells_the_first_results_the_worst_and_means(
    learnt: Learnt, pollex: Pollex, tmp_path: Path
) -> None:
    out = tmp_path / "s.jsonl"
    ended = pollex(
        "score",
        learnt.log,
        "--rubrics",
        learnt.rubrics,
        "--out",
        out,
        "--store",
        tmp_path / "store",
    )
    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    with Store.open(tmp_path / "store", read_only=True) as store:
        state = asyncio.run(
            get_last_state_after_node(store, find_run(store, "last"), "commit_batch")
        )
    assert [row["id"] for row in state["first"]] == [row["id"] for row in rows[:MAX_RESULTS_SHOWN]]
    assert [row["netsat"] for row in state["first"]] == [
        row["netsat"] for row in rows[:MAX_RESULTS_SHOWN]
    ]
    assert all(row["why"] for row in state["first"])
    lowest = sorted(row["probability"] for row in rows)[:MAX_WORST_RESULTS_SHOWN]
    assert [row["probability"] for row in state["worst"]] == lowest
    assert state["so_far"]["probability"]["n"] == len(rows)
    assert len(json.dumps(state)) < LARGEST


def test_the_worst_are_of_all_batches_and_one_result_stands_there_once() -> None:
    found = Findings()
    for start in (0, 100):
        ids = [str(number) for number in range(start, start + 100)]
        found.begin(ids)
        for id_ in ids:
            found.take(id_, dict, rank=-float(id_), figures={"n": 1.0})
    found.take("150", dict, rank=-1000.0)
    told = found.as_state
    assert [row["id"] for row in told["worst"]] == ["150", *map(str, range(199, 190, -1))]
    assert [row["id"] for row in told["first"]] == [str(number) for number in range(100, 120)]
    assert told["so_far"]["n"] == {"mean": 1.0, "n": 200}
