"""The state of a graph says what was found: first results, the worst, means; and stays small."""

import asyncio
import json
from pathlib import Path

from small_runs import Learnt, Pollex

from pollex.graphs.findings import FIRST, WORST, Findings
from pollex.graphs.run import state_after
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.state_told import state_told
from pollex.store.resume import find_run
from pollex.store.store import Store

LARGEST = 200_000
"""Bytes of a checkpoint."""


def test_a_state_of_learn_tells_who_answers_what_rubrics_weigh_and_the_threshold(
    learnt: Learnt,
) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        state = asyncio.run(state_after(store, find_run(store, "learn"), "assess"))
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
    lines = list(state_told("learn-1", "assess", state, {}))
    assert not any("\x1b" in str(line) or "\n" in str(line) for line in lines)
    assert "  auc: 0.71 [0.6, 0.8], n = 40" in lines
    assert any(
        str(line).startswith("  The user says") and "mean 2.5" in str(line) for line in lines
    )
    assert "judged_by: 1 m" in lines
    assert "empty: none" in lines


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
        state = asyncio.run(state_after(store, find_run(store, "last"), "commit_batch"))
    assert [row["id"] for row in state["first"]] == [row["id"] for row in rows[:FIRST]]
    assert [row["netsat"] for row in state["first"]] == [row["netsat"] for row in rows[:FIRST]]
    assert all(row["why"] for row in state["first"])
    lowest = sorted(row["probability"] for row in rows)[:WORST]
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
