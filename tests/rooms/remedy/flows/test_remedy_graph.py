"""The graph `remedy` by its context, as a server runs it: it waits for people, and goes on by a command."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from protocol_server import ProtocolServer
from remedy_log import TARGET, read_table_log, table_rubrics

from pollex.graphs.run import make_run_config
from pollex.rooms.remedy.graphs.graph import RemedyContext
from pollex.store.folder import STORE_ENVIRONMENT_VARIABLE
from pollex.store.resume import read_step_result
from pollex.store.store import Store
from pollex.studio.graphs import remedy

PROMPT = "You book tables for guests of restaurants.\nBe short.\nAsk for what is missing.\n"
SHOP = """
import random

FAILS, WORKS = "I'm sorry, I wasn't able to book a table for Friday.", "I've booked a table for Friday. It costs $40."


def answer(messages, system):
    rng = random.Random(f"inn {messages}{system}")
    ends = " Is there anything else that I can do?" * rng.randint(0, 2)
    return (WORKS if "another time" in system and rng.random() < 0.9 else FAILS) + ends
"""
HUNK = {
    "kind": "insert",
    "line": 2,
    "text": "Offer another time.",
    "purpose": "offers more",
    "examples": [1],
}


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a form of the graph's context gives."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STORE_ENVIRONMENT_VARIABLE, str(tmp_path / "store"))
    sys.modules.pop("shop", None)
    table_rubrics(read_table_log(tmp_path / "log.jsonl", 100)).save(tmp_path / "rubrics.json")
    with ProtocolServer() as server:
        server.script(
            [
                {
                    "do": "message",
                    "match": "You edit the system prompt",
                    "content": json.dumps({"hunks": [HUNK]}),
                }
            ]
        )
        table = f'[proposer]\nmodel = "m"\nbase_url = "{server.url}"\n'
        for name, text in {"system.md": PROMPT, "shop.py": SHOP, "profiles.toml": table}.items():
            (tmp_path / name).write_text(text)
        known = {
            "logs": "log.jsonl",
            "rubrics": "rubrics.json",
            "prompt": "system.md",
            "target": TARGET,
        }
        yield known | {"assistant": "shop:answer", "group_field": "user"}


async def began(context: RemedyContext) -> tuple[Any, Any, Any]:
    """A thread that waits for people: the graph, the thread, and what they are asked."""
    graph = remedy.copy(update={"checkpointer": InMemorySaver()})
    thread = make_run_config(str(uuid4()))
    (asked,) = (await graph.ainvoke({}, thread, context=context))["__interrupt__"]
    return graph, thread, asked.value


def kept_of(folder: Path, run: str) -> Any:
    with Store.open(folder / "store", read_only=True) as store:
        return read_step_result(store, run, "remedy") or {}


async def test_nobody_accepts_and_nothing_is_proved_somebody_does_and_it_is(
    chosen: dict[str, Any], tmp_path: Path
) -> None:
    context = RemedyContext(**chosen, profiles="profiles.toml")
    for accepted, why, edits in (
        ([], "no proposal was accepted", []),
        (["proposal 1"], "", ["proposal 1"]),
    ):
        graph, thread, asked = await began(context)
        assert [one["name"] for one in asked["edits"]] == ["proposal 1"]
        assert "+Offer another time." in asked["edits"][0]["diff"]
        ended = await graph.ainvoke(Command(resume=accepted or ["none"]), thread, context=context)
        assert (ended["why"], ended["edits"]) == (why, edits)
        assert [one["name"] for one in kept_of(tmp_path, ended["run"])["edits"]] == edits
    pairs_are_told([state.values async for state in graph.aget_state_history(thread)])


def pairs_are_told(states: list[dict[str, Any]]) -> None:
    """After the proof the state has the first pairs, those that fell, and how far each prompt does what is asked."""
    state = states[0]
    assert 0 < len(state["first"]) <= 20
    row = state["first"][0]
    assert row["replies"].keys() == row["target"].keys() == {"old", "proposal 1"}
    means = {name: one["mean"] for name, one in state["so_far"].items()}
    assert means["target, proposal 1"] > means["target, old"]
    fell = [one["target"]["old"] - one["target"]["proposal 1"] for one in state["worst"]]
    assert fell == sorted(fell, reverse=True)
    assert all(value > 0 for value in fell)
    assert 0 < state["done"] <= state["total"]
    assert max(len(json.dumps(one)) for one in states) < 200_000


async def test_people_are_waited_for_and_what_they_choose_is_the_verdict(
    chosen: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "new.md").write_text(f"{PROMPT}Offer another time.\n")
    context = RemedyContext(**chosen, edit=["new.md"], people=60)
    graph, thread, asked = await began(context)
    pairs = asked["pairs"]
    assert len(pairs) >= 20
    states = [state.values async for state in graph.aget_state_history(thread)]
    assert not any("replies" in row for state in states for row in state.get("first", [])), (
        "people compare blind"
    )
    choices = {one["key"]: "1" if "booked" in one["1"] else "2" for one in pairs}
    ended = await graph.ainvoke(Command(resume=choices), thread, context=context)
    kept = kept_of(tmp_path, ended["run"])
    assert (kept["verdict"], kept["level"]) == ("better, people agree", "P")
