"""Graphs of `langgraph.json`, run by their context as a server runs them."""

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from small_runs import Learnt

from pollex.errors import BadRubrics, PollexError
from pollex.graphs.context import Context
from pollex.graphs.learn.refit import RefitChoice
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.run import make_run_config
from pollex.graphs.score import ScoreContext
from pollex.rooms import list_hooks, list_python_names
from pollex.store.folder import STORE_ENVIRONMENT_VARIABLE
from pollex.store.resume import find_run
from pollex.store.rubric_sets import list_stored_rubric_sets
from pollex.store.store import Store
from pollex.studio.graphs import learn, refit, score
from pollex.studio.hooks import StudioGraph
from pollex.usecases.learn import LearnRubrics
from pollex.usecases.refit import RefitSet
from pollex.usecases.score import ScoreLogs
from pollex.usecases.use_case import REQUIRED, import_by_name, iterate_options


@pytest.fixture(autouse=True)
def kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in a store that has the small log's embeddings."""
    monkeypatch.setenv(STORE_ENVIRONMENT_VARIABLE, str(store))


async def test_score_takes_a_log_and_rubrics_and_tells_how_far_it_is(
    learnt: Learnt, store: Path
) -> None:
    chosen = ScoreContext(logs=str(learnt.log), rubrics=str(learnt.rubrics))
    found = await score.ainvoke({}, make_run_config(str(uuid4())), context=chosen)
    assert (found["status"], found["outcomes"], found["done"]) == ("done", {"scored": 48}, 48)
    with Store.open(store, read_only=True) as opened:
        assert find_run(opened, found["run"]).status == "done"


async def test_learn_waits_at_the_pool_and_a_pool_that_is_wrong_is_refused_while_it_waits_on(
    learnt: Learnt,
) -> None:
    graph = learn.copy(update={"checkpointer": InMemorySaver()})
    thread = make_run_config(str(uuid4()))
    chosen = LearnChoice(logs=str(learnt.log), review=True)
    stopped = await graph.ainvoke({}, thread, context=chosen)
    pool = stopped["__interrupt__"][0].value["pool"]
    other = {"sat": "dsat", "dsat": "sat"}[pool[0]["polarity"]]
    for edit, why in (
        ([*pool, pool[0]], "stands there twice"),
        ([pool[0] | {"text": " "}], "a rubric without text"),
        (
            [*pool, {"text": pool[0]["text"], "polarity": other}],
            f"is both {pool[0]['polarity']} and {other}",
        ),
        ("nothing", "the pool has no rubric left"),
    ):
        waiting = await graph.ainvoke(Command(resume=edit), thread, context=chosen)
        assert why in waiting["__interrupt__"][0].value["refused"]
    own = {"text": "The assistant says when it will be back.", "polarity": "sat"}
    ended = await graph.ainvoke(Command(resume=[*pool[1:], own]), thread, context=chosen)
    assert ended["digest"]
    assert [row["text"] for row in ended["kept"]] == [
        *(row["text"] for row in pool[1:]),
        own["text"],
    ]


ROOT = Path(__file__).parents[3]
BIKES = str(ROOT / "examples" / "bikes.jsonl")

FORMS = {LearnChoice: LearnRubrics, RefitChoice: RefitSet, ScoreContext: ScoreLogs}
FORMS |= {
    get_type_hints(graph.use_case)["form"]: import_by_name(list_python_names()[graph.name])
    for graph in list_hooks(StudioGraph)
}
"""Use cases by the forms of their graphs, those of rooms among them."""


@pytest.mark.parametrize("form", FORMS)
def test_a_field_of_a_form_is_an_option_of_its_use_case(form: type[Context]) -> None:
    options = {option.name for option in iterate_options(FORMS[form])}
    assert {one.name for one in fields(form)} <= options
    needed = {option.name for option in iterate_options(FORMS[form]) if option.default is REQUIRED}
    assert needed <= {one.name for one in fields(form)}


NOT_ON_A_FORM = {
    "out": "runs of a server are kept in the store",
    "again": "what was answered is in the store",
    "max_cost": "max_calls caps a run",
    "price": "asked for beside max_cost alone",
    "batch_discount": "likewise",
    "engine": "a server scores in its own process",
    "require": "asked for by who set it",
    "rubrics": "what other verbs ask for",
    "rubrics_from": "rubrics that are given are the graph `refit`'s",
    "category_field": "of `grade` and `answer`",
}
"""Options that errors ask for and forms lack, and why."""


def options_that_errors_ask_for() -> set[str]:
    """Options that an error names as `option=`, or spells, anywhere in the code."""
    asked = set[str]()
    folders = ("pollex", "graphs", "prompts", "selection", "calibration")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for call in (
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ):
            if getattr(call.func, "id", "") == "spell_options":
                asked.update(keyword.arg for keyword in call.keywords if keyword.arg)
            for keyword in call.keywords:
                if keyword.arg == "option":
                    asked.update(
                        node.value
                        for node in ast.walk(keyword.value)
                        if isinstance(node, ast.Constant) and isinstance(node.value, str)
                    )
    return asked


def test_a_form_has_what_errors_of_its_use_case_ask_for() -> None:
    asked = options_that_errors_ask_for() - NOT_ON_A_FORM.keys()
    assert {"label_field", "unrated", "encoding"} <= asked
    lacking = {}
    for form, use_case in FORMS.items():
        options = {option.name for option in iterate_options(use_case)}
        if missing := (asked & options) - {field.name for field in fields(form)}:
            lacking[form.__name__] = missing
    assert not lacking


@pytest.mark.parametrize(
    ("graph", "form", "says"),
    [
        (score, ScoreContext(logs="log.jsonl"), "rubrics is empty → fill it in: rubrics="),
        (refit, RefitChoice(), "logs is empty"),
        (learn, LearnChoice(logs="nowhere.jsonl"), "nowhere.jsonl: .*no such file"),
        (learn, LearnChoice(logs="log.jsonl", method="spur"), "run the graph `spur`"),
        (learn, LearnChoice(logs=BIKES, system="rubicon"), "takes a model → name one: model="),
        (learn, LearnChoice(logs=BIKES, policy="best"), "best"),
    ],
)
async def test_what_is_wrong_reaches_callers_as_a_value_error_with_its_remedy(
    graph: Any, form: Context, says: str
) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        await graph.ainvoke({}, make_run_config(str(uuid4())), context=form)
    assert isinstance(refused.value, PollexError)


async def test_a_set_that_was_learned_here_is_refitted_and_scores_by_the_name_of_its_run(
    learnt: Learnt, store: Path
) -> None:
    learned = await learn.ainvoke(
        {}, make_run_config(str(uuid4())), context=LearnChoice(logs=str(learnt.log))
    )
    refitted = await refit.ainvoke(
        {},
        make_run_config(str(uuid4())),
        context=RefitChoice(logs=str(learnt.log), rubrics=learned["run"]),
    )
    assert refitted["digest"]
    for name in (refitted["run"], learned["digest"]):
        chosen = ScoreContext(logs=str(learnt.log), rubrics=name)
        found = await score.ainvoke({}, make_run_config(str(uuid4())), context=chosen)
        assert found["outcomes"] == {"scored": 48}


async def test_who_goes_on_from_a_state_of_an_ended_run_forks_it_and_the_parent_stays(
    learnt: Learnt, store: Path
) -> None:
    graph = learn.copy(update={"checkpointer": InMemorySaver()})
    thread = make_run_config(str(uuid4()))
    form = LearnChoice(logs=str(learnt.log))
    first = await graph.ainvoke({}, thread, context=form)
    with Store.open(store, read_only=True) as opened:
        before = find_run(opened, first["run"])
        sets = [kept.digest for kept in list_stored_rubric_sets(opened)]
    history = [state async for state in graph.aget_state_history(thread)]
    (at,) = [state for state in history if state.next == ("fit_judge",)]
    changed = await graph.aupdate_state(
        at.config, {"kept": at.values["kept"][1:]}, as_node="review_pool"
    )
    forked = await graph.ainvoke(None, changed, context=form)
    assert forked["run"] != first["run"]
    assert forked["parent"] == first["run"]
    assert at.values["kept"][0]["id"] not in {row["id"] for row in forked["kept"]}
    with Store.open(store, read_only=True) as opened:
        assert find_run(opened, first["run"]) == before
        assert find_run(opened, forked["run"]).arguments["parent"] == first["run"]
        assert [
            kept.digest for kept in list_stored_rubric_sets(opened) if kept.run == first["run"]
        ] == sets[:1]


async def test_who_forks_a_run_that_waits_at_the_pool_gets_a_run_of_its_own_and_the_parent_waits_on(
    learnt: Learnt, store: Path
) -> None:
    graph = learn.copy(update={"checkpointer": InMemorySaver()})
    thread = make_run_config(str(uuid4()))
    form = LearnChoice(logs=str(learnt.log), review=True)
    await graph.ainvoke({}, thread, context=form)
    waiting = await graph.aget_state(thread)
    parent = waiting.values["run"]
    history = [state async for state in graph.aget_state_history(thread)]
    (at,) = [state for state in history if state.next == ("reword",)]

    fork = await graph.aupdate_state(
        at.config, {"kept": at.values["kept"][1:]}, as_node="deduplicate"
    )
    stopped = await graph.ainvoke(None, fork, context=form)
    assert "__interrupt__" in stopped, "the fork waits at its own pool"
    assert (stopped["run"] != parent, stopped["parent"]) == (True, parent)
    assert [row["id"] for row in stopped["kept"]] == [
        row["id"] for row in waiting.values["kept"][1:]
    ]
    with Store.open(store, read_only=True) as opened:
        assert find_run(opened, parent).status == "interrupted"
        assert find_run(opened, stopped["run"]).arguments["parent"] == parent
    assert (await graph.aget_state(waiting.config)).values == waiting.values

    ended = await graph.ainvoke(Command(resume=stopped["kept"]), thread, context=form)
    assert (ended["run"], bool(ended["digest"])) == (stopped["run"], True)
    with Store.open(store, read_only=True) as opened:
        assert find_run(opened, parent).status == "interrupted"


async def test_what_cannot_be_run_says_why(learnt: Learnt, tmp_path: Path) -> None:
    nowhere = ScoreContext(logs=str(learnt.log), rubrics=str(tmp_path / "nowhere.json"))
    with pytest.raises(BadRubrics, match="nowhere"):
        await score.ainvoke({}, make_run_config(str(uuid4())), context=nowhere)
    with pytest.raises(PollexError, match="no such file"):
        await learn.ainvoke(
            {},
            make_run_config(str(uuid4())),
            context=LearnChoice(logs=str(tmp_path / "nowhere.jsonl")),
        )
