"""Graphs in batches: where a run that was stopped goes on, what its checkpoints hold, and what is refused."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from plain_judges import PlainJudge, except_for, likert, raises

from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import ModelRefused, ResumeRefused, StoreDamaged
from pollex.graphs.run import compile_graph_with_checkpoints, make_run_config
from pollex.rooms.questionnaire.graphs.graph import build
from pollex.rooms.questionnaire.services.ask import ask_all_conversations
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Question, Unanswered
from pollex.runs import run as runs
from pollex.runs.run import RunSettings
from pollex.store.database import CHECKPOINTS_FILE_NAME
from pollex.store.resume import find_run
from pollex.store.store import Store

LOG = [
    Conversation(
        id=f"c{n}",
        turns=(Turn(role="user", content=f"Do {n}."), Turn(role="assistant", content="Done.")),
    )
    for n in range(10)
]
QUESTIONS = [Question(id="q", text="Was it done?", options=LIKERT_OPTIONS)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def agreed(_conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
    return [likert(question, 3) for question in questions]


async def asked(store: Store, judge: PlainJudge, **setting: Any) -> tuple[str, dict[str, int]]:
    settings = RunSettings.of(store, batch=3, **setting)
    return await ask_all_conversations(
        LOG, QUESTIONS, judge=judge, data_fingerprint="d" * 64, setting=settings
    )


async def states(store: Store, run: str) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """What comes next, and the state, at each checkpoint of a run, the first one first."""
    async with compile_graph_with_checkpoints(build(), store) as graph:
        return [
            (one.next, one.values) async for one in graph.aget_state_history(make_run_config(run))
        ][::-1]


async def test_a_resume_goes_on_at_the_batch_that_was_unfinished_and_asks_only_for_its_rest(
    store: Store,
) -> None:
    broken = except_for("c4", raises(ModelRefused("the key is wrong")))
    with pytest.raises(ModelRefused):
        await asked(store, PlainJudge(broken))
    run = find_run(store, "last").id
    (following, state) = (await states(store, run))[-1]
    assert (following, state["batch"], state["done"]) == (("ask_questions",), ["c3", "c4", "c5"], 3)
    judge = PlainJudge(agreed)
    found = await asked(store, judge, resume=True)
    assert found == (run, {"point": 10})
    assert "c4" in {id_ for id_, _ in judge.asked}
    assert max(Counter(id_ for id_, _ in judge.asked).values()) == 1
    assert not {id_ for id_, _ in judge.asked} & {"c0", "c1", "c2"}


async def test_the_state_after_each_node_says_how_far_the_run_is_in_values_of_json(
    store: Store,
) -> None:
    found = await asked(store, PlainJudge(agreed))
    history = await states(store, found[0])
    assert [following for following, _ in history] == [
        ("__start__",),
        *[("plan_batch",), ("ask_questions",), ("commit_batch",)] * 4,
        ("plan_batch",),
        ("finish",),
        (),
    ]
    done = [
        state["done"]
        for following, state in history
        if following == ("plan_batch",) and "done" in state
    ]
    assert done == [3, 6, 9, 10]
    last = history[-1][1]
    assert json.loads(json.dumps(last)) == last
    told = {"done": 10, "total": 10, "outcomes": {"point": 10}, "status": "done"}
    results = {name: last.pop(name) for name in ("first", "worst", "so_far")}
    about = {"run": found[0], "batch": [], "by_node": {}, "questions": {"q": "Was it done?"}}
    assert last == about | {"asked": {"ask_questions": 1}} | told
    assert [row["id"] for row in results["first"]] == ["c9"]
    assert results["first"][0]["answers"] == {"q": "Agree (100%)"}
    assert results["so_far"] == {"value of q": {"mean": 7.5, "n": 10}}


async def test_a_state_tells_what_its_node_found_before_the_batch_is_committed(
    store: Store,
) -> None:
    run, _ = await asked(store, PlainJudge(agreed))
    history = await states(store, run)
    before_commit = [state for following, state in history if following == ("commit_batch",)]
    assert [[row["id"] for row in state["first"]] for state in before_commit] == [
        ["c0", "c1", "c2"],
        ["c3", "c4", "c5"],
        ["c6", "c7", "c8"],
        ["c9"],
    ]


async def test_questions_that_do_not_apply_are_named_and_are_in_no_mean(store: Store) -> None:
    skipped = Question(id="skipped", text="Was a source named?", options=LIKERT_OPTIONS)

    def answered(
        _conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        chosen = {"q": 1, "skipped": len(LIKERT_OPTIONS) - 1}
        return [likert(question, chosen[question.id]) for question in questions]

    run, _ = await ask_all_conversations(
        LOG,
        [skipped, *QUESTIONS],
        judge=PlainJudge(answered),
        data_fingerprint="d" * 64,
        setting=RunSettings.of(store, batch=100),
        skips=frozenset(("skipped",)),
    )
    state = (await states(store, run))[-1][1]
    assert state["so_far"] == {"value of q": {"mean": 2.5, "n": 10}}
    row = state["first"][0]
    assert row["answers"] == {"q": "Disagree (100%)"}
    assert row["not_applicable"] == ["skipped"]


async def test_what_failed_in_an_ended_run_is_asked_again_by_a_resume_and_counted_once(
    store: Store,
) -> None:
    first = await asked(store, PlainJudge(except_for("c7", raises(OSError("gone")))))
    assert first[1] == {"point": 9, "error": 1}
    judge = PlainJudge(agreed)
    assert await asked(store, judge, resume=True) == (first[0], {"point": 10})
    assert [id_ for id_, _ in judge.asked] == ["c7"]


async def test_checkpoints_of_another_version_or_other_settings_are_refused_and_without_any_results_are_gone_on_by(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelRefused):
        await asked(store, PlainJudge(except_for("c4", raises(ModelRefused("the key is wrong")))))
    with monkeypatch.context() as other:
        other.setattr(runs, "STATE_FORMAT_VERSION", "later")
        with pytest.raises(ResumeRefused, match="graph: another version of pollex"):
            await asked(store, PlainJudge(), resume=True)
    settings = RunSettings.of(store, resume=True)
    with pytest.raises(ResumeRefused, match="data: other conversations"):
        await ask_all_conversations(
            LOG, QUESTIONS, judge=PlainJudge(), data_fingerprint="e" * 64, setting=settings
        )
    with sqlite3.connect(store.folder / CHECKPOINTS_FILE_NAME) as database:
        database.execute("DELETE FROM checkpoints")
    judge = PlainJudge(agreed)
    assert (await asked(store, judge, resume=True))[1] == {"point": 10}
    assert not {id_ for id_, _ in judge.asked} & {"c0", "c1", "c2"}


async def test_checkpoints_that_cannot_be_read_are_told(store: Store) -> None:
    (store.folder / CHECKPOINTS_FILE_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreDamaged):
        await asked(store, PlainJudge(agreed))
