"""`pollex simulate` on a server: plan, dialogues of each system, resume, and what reads the file."""

import json
from pathlib import Path

from protocol_server import ProtocolServer
from small_log import read_rows
from small_runs import Pollex

from pollex import read_logs

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
        {
            "role": "assistant",
            "text": "Two years.",
            "sources": [{"document": n, "quote": QUOTE} for n in (1, 2)],
        },
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


def test_a_plan_asks_nobody_a_resumed_run_pays_nothing_twice_and_its_file_is_a_log_that_quotes_documents(
    pollex: Pollex,
) -> None:
    Path("topics.toml").write_text(TOPICS)
    Path("help").mkdir()
    for name, text in DOCUMENTS.items():
        Path("help", name).write_text(text)
    # The model says the same whatever it is asked, but that users with a kettle are like people.
    with ProtocolServer(script=[HUMAN, RULE]) as server:
        files = ["--topics", "topics.toml", "--documents", "help", "--base-url", server.url]
        asked = ["simulate", *files, "--systems", ",".join(SYSTEMS), "--model", "m", "--json"]
        plan = pollex(*asked, "--turns", "3", "--dry-run").last["plan"]
        calls = {
            stage.removeprefix("simulate_"): figures["calls"] for stage, figures in plan.items()
        }
        assert calls == {
            "whole": 6,
            "user": 12,
            "assistant": 12,
            "query": 6,
            "quality": 10,
            "all": 46,
        }
        assert server.counts()["received"] == 0
        assert pollex(*asked, "--max-calls", "7").code != 0
        assert not Path("dialogues.jsonl").exists()
        stopped = server.counts()["received"]
        probes = 0
        for _ in range(2):
            ended = pollex(*asked, "--resume")
            assert ended.code == 0, ended.err
            assert ended.last["outcomes"] == {"simulated": 10}
            probes += ended.last["probe_calls"]
        assert server.counts()["received"] > stopped + probes
        assert server.counts()["repeated"] == probes
    found = read_rows(Path("dialogues.jsonl"))
    assert [row["id"] for row in found] == [
        f"{name}-{id_}-hurried" for name in SYSTEMS for id_ in ("kettle", "lamp")
    ]
    assert [row["ended"] for row in found] == ["whole"] * 6 + ["repeat"] * 4
    assert {row["label_source"] for row in found} == {"simulated"}
    quotes = [quote for row in found for quote in row["quotes"]]
    assert quotes
    assert all(quote["quote"] in DOCUMENTS[quote["document"]] for quote in quotes)
    shown = [source for row in found for source in row["sources"]]
    assert all(source["text"] in DOCUMENTS[source["name"]] for source in shown)
    assert [row["sources"] for row in found if row["system"] == "DS1"] == [[], []]
    assert "10 conversations: 0 up, 0 down" in pollex("inspect", "dialogues.jsonl").out
    read = read_logs("dialogues.jsonl", label_field="quality.human", positive="yes", negative="no")
    assert not read.bad_rows
    assert [bool(one.sources) for one in read] == [bool(row["sources"]) for row in found], (
        "judges see them, too"
    )
    assert [one.label.value for one in read] == ["positive", "negative"] * len(SYSTEMS)
    assert [one.metadata["topic"] for one in read] == ["kettle", "lamp"] * len(SYSTEMS)
