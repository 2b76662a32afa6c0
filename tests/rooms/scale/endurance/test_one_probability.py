"""Whatever way a conversation is scored, it is the network at the end of the chain that says the probability."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from small_runs import run_here

import pollex
from pollex.calibration.candidates import CALIBRATION_NETWORK_NAME
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.graphs.context import NullProgress
from pollex.langgraph import score_node
from pollex.rooms.scale.services.distill import score_by_old_set
from pollex.rooms.scale.web.live.app import make_application
from pollex.rooms.scale.web.live.waiting_line import ServiceMetrics, WaitingLine, open_scorer
from pollex.rubrics.answers import Answer
from pollex.rubrics.score import Score
from pollex.runs.options import ModelOptions, RunOptions
from pollex.services.compare import score_arms
from pollex.services.evaluate import measure_likelihoods
from pollex.services.rejudging import score_by_rubrics
from pollex.services.share import score_probabilities
from pollex.store.resume import read_answers
from pollex.store.store import Store

BIKES = Path(__file__).parents[4] / "examples" / "bikes.jsonl"
LEARNED_FROM = slice(160)
"""Here rubrics are chosen in another order than a refit has them in, and first weights depend on it."""

ROWS = slice(388, 404)
"""Some with a thumb, and some without."""


async def over_http(rubrics: Path, store: Path, rows: list[dict[str, Any]]) -> list[float]:
    line = WaitingLine(rubrics, open_scorer(rubrics, store), 40, ServiceMetrics(), store)
    working = asyncio.create_task(line.work())
    transport = httpx2.ASGITransport(make_application(line, "t"))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://here", headers={"Authorization": "Bearer t"}
    ) as client:
        scores = (await client.post("/v1/score", json={"conversations": rows})).json()["scores"]
    working.cancel()
    line.close()
    return [score["probability"] for score in scores]


def drafted(store: Path, found: pollex.RubricSet, ids: list[str]) -> list[Score]:
    """What a draft's preview compares with, by the answers of the run of `score`."""
    with Store.open(store, read_only=True) as opened:
        run = opened.value("SELECT id FROM runs WHERE command = 'score' ORDER BY started")
        answers = read_answers(opened, run)
    return score_by_rubrics(found, found.rubrics, {id_: answers[id_] for id_ in ids})


@pytest.mark.nightly
def test_a_conversation_has_one_probability_whatever_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = BIKES.read_text("utf-8").splitlines()
    Path("new.jsonl").write_text("\n".join(lines[ROWS]), "utf-8")
    Path("log.jsonl").write_text("\n".join(lines[LEARNED_FROM]), "utf-8")
    for command in (
        ("learn", "log.jsonl", "--out", "set.json", "--test-fraction", "0.5"),
        ("refit", "log.jsonl", "--rubrics", "set.json", "--out", "again.json"),
        ("score", "new.jsonl", "--rubrics", "set.json", "--out", "scores.jsonl"),
        ("score", "new.jsonl", "--rubrics", "again.json", "--out", "again.jsonl"),
    ):
        ended = run_here(*command)
        assert ended.code == 0, (command, ended.err)
    rows = [json.loads(line) for line in lines[ROWS]]
    store = Path(".pollex")
    found = pollex.RubricSet.load("set.json")
    log = make_logs_of_conversations(pollex.read_logs("new.jsonl"))
    assert found.calibrator is not None
    assert found.calibrator.chosen == CALIBRATION_NETWORK_NAME
    run = RunOptions(store)
    model = ModelOptions()
    progress = NullProgress()
    with pollex.Scorer(found) as scorer:
        one_by_one = [scorer.score(row) for row in rows]
        node = score_node(scorer)
        in_graph = [
            node.invoke({"messages": row["messages"]})["pollex"]["probability"] for row in rows
        ]
    given = {
        known.text_hash: {
            answer.question_id: answer for answer in score.answers if isinstance(answer, Answer)
        }
        for known, score in zip(log, one_by_one, strict=True)
    }
    arms, unscored = score_arms(
        ["new.jsonl", "log.jsonl"],
        found,
        reading=ReadOptions(),
        run=run,
        model=model,
        progress=progress,
    )
    assert unscored == 0, "so each has a probability"
    ways = {
        "score": [
            json.loads(line)["probability"]
            for line in Path("scores.jsonl").read_text("utf-8").splitlines()
        ],
        "refit": [
            json.loads(line)["probability"]
            for line in Path("again.jsonl").read_text("utf-8").splitlines()
        ],
        "share": score_probabilities(log, found, run, model, progress),
        "compare": arms[0].probability,
        "distill": [score.probability for score in score_by_old_set(found, list(log), given)],
        "live": asyncio.run(over_http(Path("set.json"), store, rows)),
        "node": in_graph,
        "draft": [score.probability for score in drafted(store, found, [one.id for one in log])],
    }
    expected = np.array([score.probability for score in one_by_one])
    assert np.ptp(expected) > 0.05, "the conversations differ"
    for way, values in ways.items():
        assert np.abs(np.array(values, float) - expected).max() <= 1e-9, way
    labelled = [(c, s) for c, s in zip(log, one_by_one, strict=True) if c.label.value != "none"]
    told = measure_likelihoods(found, [c for c, _ in labelled], [s for _, s in labelled])[
        0
    ].log_loss
    loss = [
        -np.log(s.probability if c.label.value == "positive" else 1 - (s.probability or 0))
        for c, s in labelled
    ]
    assert told.value == pytest.approx(np.mean(loss), abs=1e-6), "evaluate"
