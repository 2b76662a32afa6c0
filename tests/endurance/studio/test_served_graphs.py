"""Graphs of `langgraph.json`, run by their context as a server runs them."""

from pathlib import Path
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from small_runs import Learnt

from pollex.errors import BadRubrics, PollexError
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.run import thread_of
from pollex.graphs.score import ScoreContext
from pollex.store.folder import VARIABLE
from pollex.store.resume import find_run
from pollex.store.store import Store
from pollex.studio.graphs import learn, score


@pytest.fixture(autouse=True)
def kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in a store that has the small log's embeddings."""
    monkeypatch.setenv(VARIABLE, str(store))


async def test_score_takes_a_log_and_rubrics_and_tells_how_far_it_is(learnt: Learnt, store: Path) -> None:
    chosen = ScoreContext(logs=str(learnt.log), rubrics=str(learnt.rubrics))
    found = await score.ainvoke({}, thread_of(str(uuid4())), context=chosen)
    assert (found["status"], found["outcomes"], found["done"]) == ("done", {"scored": 48}, 48)
    with Store.open(store, read_only=True) as opened:
        assert find_run(opened, found["run"]).status == "done"


async def test_learn_waits_at_the_pool_and_a_pool_that_is_wrong_is_refused_while_it_waits_on(learnt: Learnt) -> None:
    graph, thread = learn.copy(update={"checkpointer": InMemorySaver()}), thread_of(str(uuid4()))
    chosen = LearnChoice(logs=str(learnt.log), review=True)
    stopped = await graph.ainvoke({}, thread, context=chosen)
    pool = stopped["__interrupt__"][0].value["pool"]
    other = {"sat": "dsat", "dsat": "sat"}[pool[0]["polarity"]]
    for edit, why in (
        ([*pool, pool[0]], "stands there twice"),
        ([pool[0] | {"text": " "}], "a rubric without text"),
        ([*pool, {"text": pool[0]["text"], "polarity": other}], f"is both {pool[0]['polarity']} and {other}"),
        ("nothing", "the pool has no rubric left"),
    ):
        waiting = await graph.ainvoke(Command(resume=edit), thread, context=chosen)
        assert why in waiting["__interrupt__"][0].value["refused"]
    own = {"text": "The assistant says when it will be back.", "polarity": "sat"}
    ended = await graph.ainvoke(Command(resume=[*pool[1:], own]), thread, context=chosen)
    assert ended["digest"]
    assert [row["text"] for row in ended["kept"]] == [*(row["text"] for row in pool[1:]), own["text"]]


async def test_what_cannot_be_run_says_why(learnt: Learnt, tmp_path: Path) -> None:
    nowhere = ScoreContext(logs=str(learnt.log), rubrics=str(tmp_path / "nowhere.json"))
    with pytest.raises(BadRubrics, match="nowhere"):
        await score.ainvoke({}, thread_of(str(uuid4())), context=nowhere)
    with pytest.raises(PollexError, match="no such file"):
        await learn.ainvoke({}, thread_of(str(uuid4())), context=LearnChoice(logs=str(tmp_path / "nowhere.jsonl")))
