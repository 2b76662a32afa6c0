"""`pollex simulate` on a server: plan, dialogues of each system, resume, and what reads the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from small_runs import Ended, Pollex

from pollex.formats.read_logs import read_logs

SYSTEMS = ["DS1", "DS2", "DS3", "DS4", "DS5"]
TOPICS = """
[[topics]]
id = "kettle"
text = "You want to return a kettle that leaks."
documents = ["returns.md"]
[[topics]]
id = "lamp"
text = "You want to know how long the warranty of a lamp is."
documents = ["lamps.md"]
[[personas]]
id = "hurried"
text = "Short of time."
"""
DOCUMENTS = {
    "returns.md": "Return a faulty kettle within thirty days.",
    "lamps.md": "A lamp has a warranty of two years.",
}
QUOTE = "a warranty of two years"
SAID = {
    "turns": [
        {"role": "user", "text": "Lamp?", "sources": []},
        {"role": "assistant", "text": "Two years.", "sources": [{"document": n, "quote": QUOTE} for n in (1, 2)]},
    ],
    "text": "The lamp, or the kettle?",
    "query": "warranty of a lamp",
    "sources": [{"document": n, "quote": QUOTE} for n in (1, 2)],
    "ends": False,
    "conversation": "yes",
    "pursues": "yes",
    "human": "no",
}
RULE = {"do": "message", "match": "DATA ", "content": json.dumps(SAID)}
HUMAN = RULE | {"match": "return a kettle that", "content": json.dumps(SAID | {"human": "yes"})}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    """A server whose model says the same whatever it is asked, but that users with a kettle are like people."""
    with ProtocolServer(script=[HUMAN, RULE]) as server:
        yield server


@pytest.fixture
def asked(pollex: Pollex, server: ProtocolServer) -> list[str]:
    """The files, and the options of a simulation by all systems."""
    Path("topics.toml").write_text(TOPICS)
    Path("help").mkdir()
    for name, text in DOCUMENTS.items():
        Path("help", name).write_text(text)
    place = ["--model", "m", "--base-url", server.url, "--json"]
    return ["simulate", "--topics", "topics.toml", "--systems", ",".join(SYSTEMS), "--documents", "help", *place]


def printed(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    return found


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("dialogues.jsonl").read_text().splitlines()]


def test_a_dry_run_counts_calls_and_asks_nobody(pollex: Pollex, asked: list[str], server: ProtocolServer) -> None:
    plan = printed(pollex(*asked, "--turns", "3", "--dry-run"))["plan"]
    calls = {stage: figures["calls"] for stage, figures in plan.items()}
    assert calls == {
        "simulate_whole": 6,
        "simulate_user": 12,
        "simulate_assistant": 12,
        "simulate_query": 6,
        "simulate_quality": 10,
        "all": 46,
    }
    assert server.counts()["received"] == 0


def test_each_system_holds_its_dialogues_and_quotes_from_documents(pollex: Pollex, asked: list[str]) -> None:
    ended = pollex(*asked)
    assert ended.code == 0, ended.err
    found = rows()
    assert [row["id"] for row in found] == [f"{name}-{id_}-hurried" for name in SYSTEMS for id_ in ("kettle", "lamp")]
    assert {row["ended"] for row in found if row["system"] in SYSTEMS[:3]} == {"whole"}
    assert {row["ended"] for row in found if row["system"] in SYSTEMS[3:]} == {"repeat"}
    assert {row["label_source"] for row in found} == {"simulated"}
    assert [row["quality"]["human"] for row in found] == ["yes", "no"] * len(SYSTEMS)
    sources = [source for row in found for source in row["sources"]]
    assert sources
    assert all(source["quote"] in DOCUMENTS[source["document"]] for source in sources)
    assert [row["sources"] for row in found if row["system"] == "DS1"] == [[], []]


def test_a_resumed_run_pays_nothing_twice(pollex: Pollex, asked: list[str], server: ProtocolServer) -> None:
    assert pollex(*asked, "--max-calls", "7").code != 0
    assert not Path("dialogues.jsonl").exists()
    stopped = server.counts()["received"]
    probes = 0
    for _ in range(2):
        ended = pollex(*asked, "--resume")
        assert ended.code == 0, ended.err
        assert printed(ended)["outcomes"] == {"simulated": 10}
        probes += printed(ended)["probe_calls"]
    assert len(rows()) == 10
    counts = server.counts()
    assert counts["received"] > stopped + probes
    assert counts["repeated"] == probes


def saying(n: int) -> dict[str, Any]:
    """A rule: what is written for one persona."""
    texts = (f"Where is lamp {n}?", f"In aisle {n}.")
    turns = [
        {"role": role, "text": text, "sources": []} for role, text in zip(("user", "assistant"), texts, strict=True)
    ]
    return RULE | {"match": f"Person {n}.", "content": json.dumps({"turns": turns})}


@pytest.mark.nightly
def test_judge_learn_and_calibrate_read_the_file_as_it_is(pollex: Pollex, asked: list[str]) -> None:
    personas = "".join(f'[[personas]]\nid = "p{n}"\ntext = "Person {n}."\n' for n in range(9))
    Path("topics.toml").write_text(TOPICS + personas)
    with ProtocolServer(script=[*map(saying, range(9)), HUMAN, RULE]) as server:
        pollex(*asked, "--systems", "DS1", "--base-url", server.url)
    told = rows()
    for row in told:  # the server says the same of all topics, and a text counts once
        row["messages"][0]["content"] += f" It is about a {row['topic']}."
    Path("dialogues.jsonl").write_text("\n".join(map(json.dumps, told)))
    judged = pollex("judge", "dialogues.jsonl", "--question", "Was it solved?", "--json")
    assert printed(judged)["n"] == 20
    people = [
        {"text_id": row["id"], "question": "human", "judge": "ann", "answer": n % 2} for n, row in enumerate(rows())
    ]
    Path("people.jsonl").write_text("\n".join(map(json.dumps, people)))
    fitted = pollex("calibrate", "fit", "dialogues.jsonl", "people.jsonl", "--out", "fitted", "--main", "human")
    assert fitted.code == 0, fitted.err
    assert pollex("calibrate", "predict", "fitted", "dialogues.jsonl", "--out", "predicted.jsonl").code == 0
    assert len(Path("predicted.jsonl").read_text().splitlines()) == 20
    labels = ["--label-field", "quality.human", "--positive", "yes", "--negative", "no"]
    learnt = pollex("learn", "dialogues.jsonl", *labels)
    assert learnt.code == 0, learnt.err
    assert "20 conversations: 10 up, 10 down" in learnt.out


def test_the_file_is_a_log_without_thumbs(pollex: Pollex, asked: list[str]) -> None:
    pollex(*asked)
    assert "10 conversations: 0 up, 0 down" in pollex("inspect", "dialogues.jsonl").out
    read = read_logs("dialogues.jsonl")
    assert not read.bad_rows
    assert [one.metadata["topic"] for one in read] == ["kettle", "lamp"] * len(SYSTEMS)
