"""Graphs of `langgraph.json`, run from JSON as a server runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_runs import Learnt

from pollex.errors import BadRubrics, PollexError
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.folder import VARIABLE
from pollex.studio.graphs import learn, score

THANKS = [
    {"role": "user", "content": "My code crashes."},
    {"role": "assistant", "content": "Check the index."},
    {"role": "user", "content": "Thanks, that works!"},
]


@pytest.fixture(autouse=True)
def kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in a store that has the small log's embeddings."""
    monkeypatch.setenv(VARIABLE, str(store))


async def test_score_takes_messages_and_rubrics_and_gives_the_score(learnt: Learnt) -> None:
    given = {"messages": THANKS, "rubrics": str(learnt.rubrics)}
    found = json.loads(json.dumps(await score.ainvoke(given)))["score"]
    assert (found["outcome"], found["label"] in ("positive", "negative")) == ("scored", True)
    assert 0 < found["probability"] < 1
    assert len(found["answers"]) == len(RubricSet.load(learnt.rubrics).rubrics)


async def test_learn_takes_logs_and_a_domain_and_gives_the_rubric_set(learnt: Learnt, store: Path) -> None:
    domain = Path(__file__).parents[3] / "examples" / "debugging.toml"
    found = await learn.ainvoke({"logs": str(learnt.log), "domain": str(domain)})
    rubrics = RubricSet.parse(json.loads(json.dumps(found["rubrics"])))
    assert "debugging" in rubrics.domain.assistant
    assert rubrics.rubrics
    assert found["run"] == rubrics.run


async def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadRubrics, match="nowhere"):
        await score.ainvoke({"messages": THANKS, "rubrics": str(tmp_path / "nowhere.json")})
    with pytest.raises(PollexError, match="no such file"):
        await learn.ainvoke({"logs": str(tmp_path / "nowhere.jsonl")})
