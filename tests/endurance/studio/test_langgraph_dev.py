"""`langgraph dev` serves the graphs, stops for people, goes on with their edits, and calls nobody."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from protocol_server import ProtocolServer
from remedy_log import TARGET, read_table_log, table_rubrics
from small_runs import Learnt

from pollex.store.resume import list_stored_runs
from pollex.store.store import Store

ROOT = Path(__file__).parents[3]
NOTHING_SENT = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
}
PATIENCE = 120

pytestmark = [
    pytest.mark.skipif(
        find_spec("langgraph_api") is None, reason='needs pip install "pollex[studio]"'
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a server, with the graphs in it."""
    for name in ("pollex", "langgraph.json"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture
def server(store: Path, folder: Path) -> Iterator[str]:
    """The address of a server that has started."""
    with served(store, folder) as address:
        yield address


@contextmanager
def served(store: Path, tmp_path: Path) -> Iterator[str]:
    """Start a server, which looks for blocking calls."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    environment = os.environ | NOTHING_SENT | {"POLLEX_STORE": str(store), "PYTHONPATH": str(ROOT)}
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(PATIENCE):
            assert process.poll() is None, (tmp_path / "server.log").read_text()
            try:
                urlopen(f"{address}/ok", timeout=10).read()
            except (URLError, TimeoutError):
                time.sleep(1)
            else:
                break
        yield address
    finally:
        process.terminate()
        process.wait(30)


def post(address: str, path: str, **body: Any) -> Any:
    headers = {"content-type": "application/json"}
    with urlopen(
        Request(f"{address}{path}", json.dumps(body).encode(), headers), timeout=500
    ) as reply:
        return json.loads(reply.read())


def get(address: str, path: str) -> Any:
    with urlopen(f"{address}{path}", timeout=60) as reply:
        return json.loads(reply.read())


def test_learn_stops_at_the_pool_and_goes_on_without_the_rubric_that_was_dropped(
    server: str,
) -> None:
    thread = f"/threads/{post(server, '/threads')['thread_id']}"
    chosen = {"logs": str(ROOT / "examples" / "bikes.jsonl"), "review": True}
    post(server, f"{thread}/runs/wait", assistant_id="learn", input={}, context=chosen)
    stopped = get(server, f"{thread}/state")
    assert stopped["next"] == ["review_pool"]
    pool = stopped["values"]["kept"]
    assert stopped["tasks"][0]["interrupts"][0]["value"]["pool"] == pool
    refused = [
        [*pool, pool[0]],
        [],
        [pool[0] | {"text": " "}],
        [pool[0], pool[0] | {"polarity": "maybe"}],
    ]
    words = ["stands there twice", "no rubric left", "without text", "a polarity of 'maybe'"]
    for edit, why in zip(refused, words, strict=True):
        post(
            server,
            f"{thread}/runs/wait",
            assistant_id="learn",
            command={"resume": edit or ""},
            context=chosen,
        )
        waiting = get(server, f"{thread}/state")
        assert waiting["next"] == ["review_pool"]
        assert why in waiting["tasks"][0]["interrupts"][0]["value"]["refused"]
    post(
        server,
        f"{thread}/state",
        values={"kept": pool[1:], "reviewed": True},
        as_node="review_pool",
    )
    ended = post(server, f"{thread}/runs/wait", assistant_id="learn", input=None, context=chosen)
    assert ended["digest"]
    assert (
        pool[0]["id"]
        not in {row["id"] for row in (*ended["kept"], *ended["chosen"])} | ended["pooled"].keys()
    )
    history = get(server, f"{thread}/history?limit=100")[::-1]
    told = {
        node
        for before, after in pairwise(history)
        for node in before["next"]
        if before["values"] != after["values"]
    }
    assert len(told) >= 8
    assert {"extract", "deduplicate", "judge_pool", "select", "calibrate", "assess"} <= told


def test_a_thread_whose_server_was_started_again_goes_on_with_its_own_run(
    store: Path, folder: Path, learnt: Learnt
) -> None:
    chosen = {"logs": str(learnt.log), "review": True}
    with served(store, folder) as server:
        thread = f"/threads/{post(server, '/threads')['thread_id']}"
        post(server, f"{thread}/runs/wait", assistant_id="learn", input={}, context=chosen)
        stopped = get(server, f"{thread}/state")
    with served(store, folder) as server:
        pool = stopped["values"]["kept"]
        ended = post(
            server,
            f"{thread}/runs/wait",
            assistant_id="learn",
            command={"resume": pool},
            context=chosen,
        )
    with Store.open(store, read_only=True) as kept:
        (run,) = list_stored_runs(kept)
    assert run.status == "done"
    assert ended["run"] == stopped["values"]["run"] == run.id
    assert ended["digest"]


def test_score_is_run_by_its_context_and_says_what_was_wrong_with_it(
    server: str, learnt: Learnt
) -> None:
    chosen = {"logs": str(learnt.log), "rubrics": str(learnt.rubrics)}
    scored = post(server, "/runs/wait", assistant_id="score", input={}, context=chosen)
    assert (scored["status"], scored["outcomes"], scored["total"]) == ("done", {"scored": 48}, 48)
    refused = post(
        server,
        "/runs/wait",
        assistant_id="score",
        input={},
        context=chosen | {"rubrics": "nowhere.json"},
    )
    assert refused["__error__"]["error"] == "BadRubrics"
    assert "nowhere.json: there is no such file" in refused["__error__"]["message"]
    (assistant, *_) = post(server, "/assistants/search", graph_id="learn")
    schemas = get(server, f"/assistants/{assistant['assistant_id']}/schemas")
    assert {"logs", "domain", "model", "base_url", "store", "review"} <= schemas["context_schema"][
        "properties"
    ].keys()


SHOP = """
def answer(messages, system):
    return "I've booked a table." if "another time" in system else "I'm sorry, I wasn't able to book a table."
"""
PROMPT = "You book tables for guests of restaurants.\nBe short.\n"
SAID = {
    "turns": [
        {"role": "user", "text": "How long is the warranty?", "sources": []},
        {"role": "assistant", "text": "Two years.", "sources": []},
    ],
    "conversation": "yes",
    "pursues": "yes",
    "human": "no",
}
TOPICS = """
[[topics]]
id = "lamp"
text = "You want to know how long the warranty of a lamp is."
[[personas]]
id = "hurried"
text = "Short of time."
"""


def forms_of(learnt: Learnt, folder: Path, model: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What a user fills into the form of each graph; the files that the forms name are in the folder."""
    (folder / "topics.toml").write_text(TOPICS)
    (folder / "shop.py").write_text(SHOP)
    (folder / "system.md").write_text(PROMPT)
    (folder / "new.md").write_text(f"{PROMPT}Offer another time.\n")
    table_rubrics(read_table_log(folder / "tables.jsonl", 100)).save(folder / "tables.json")
    logs = str(learnt.log)
    questions = str(ROOT / "examples" / "questions.jsonl")
    return {
        "learn": {"logs": logs},
        "spur": {"logs": logs, **model},
        "refit": {"logs": logs, "rubrics": str(learnt.rubrics)},
        "score": {"logs": logs, "rubrics": str(learnt.rubrics)},
        "judge": {"logs": logs, "question": "Was it good?", "runs": 3, **model},
        "grade": {"questions": questions, **model},
        "answer": {"questions": questions, **model},
        "ask": {"logs": logs, "questionnaire": "llm-rubric", **model},
        "simulate": {"topics": str(folder / "topics.toml"), "systems": ["DS1"], **model},
        "remedy": {
            "logs": str(folder / "tables.jsonl"),
            "rubrics": str(folder / "tables.json"),
            "prompt": str(folder / "system.md"),
            "edit": [str(folder / "new.md")],
            "target": TARGET,
            "assistant": "shop:answer",
            "group_field": "user",
        },
    }


FOUND = {
    "learn": ("chosen", "model", "theta", "window", "figures", "digest"),
    "spur": ("chosen", "model", "theta", "digest"),
    "refit": ("chosen", "theta", "digest"),
    "remedy": ("verdicts", "looks", "first", "so_far"),
}
"""What the last state of a graph tells beside its run; those in batches tell first results, the worst, and means."""


def each_node_says_something(graph: str, history: list[dict[str, Any]]) -> None:
    """No node leaves the state as it was: what has nothing to show says why."""
    for before, after in pairwise(history):
        ran = [node for node in before["next"] if node != "__start__"]
        assert not ran or before["values"] != after["values"], (graph, ran)


def test_every_exported_graph_runs_over_http_says_what_it_found_and_errors_carry_message_and_remedy(
    store: Path, folder: Path, learnt: Learnt
) -> None:
    exported = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    with ProtocolServer() as model:
        model.script(
            [
                {"do": "message", "match": "realistic dialogue", "content": json.dumps(SAID)},
                {"do": "attentive"},
            ]
        )
        forms = forms_of(learnt, folder, {"model": "m", "base_url": model.url})
        assert forms.keys() == exported.keys()
        with served(store, folder) as server:
            for graph, form in forms.items():
                thread = f"/threads/{post(server, '/threads')['thread_id']}"
                ended = post(
                    server, f"{thread}/runs/wait", assistant_id=graph, input={}, context=form
                )
                assert "__error__" not in ended, (graph, ended)
                told = get(server, f"{thread}/state")["values"]
                for name in FOUND.get(graph, ("first", "worst", "so_far")):
                    assert name in told, (graph, name)
                    assert told[name] or name == "worst", (graph, name)
                assert told["run"].startswith({"spur": "learn"}.get(graph, graph)), graph
                assert all(row["why"] for row in told.get("first", ())), (graph, "a line why")
                history = get(server, f"{thread}/history?limit=200")
                each_node_says_something(graph, history[::-1])
                assert max(len(json.dumps(state["values"])) for state in history) < 200_000, graph

                needed = next(name for name in ("logs", "questions", "topics") if name in form)
                refused = post(
                    server, "/runs/wait", assistant_id=graph, input={}, context={**form, needed: ""}
                )
                assert f"{needed} is empty → fill it in" in refused["__error__"]["message"], (
                    graph,
                    refused,
                )
