"""Runs of all graphs, each by its command: every page of every run opens, and axe finds nothing on it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from judged import write_log
from protocol_server import ProtocolServer
from visitors import Served, Visitor

pytestmark = pytest.mark.nightly  # each graph's run in a browser; flows try the same pages

SAID = {
    "turns": [{"role": "user", "text": "Lamp?"}, {"role": "assistant", "text": "Two years."}],
    "text": "The lamp?",
    "query": "lamp",
    "ends": True,
    "conversation": "yes",
    "pursues": "yes",
    "human": "no",
}
SCRIPT = [
    {"do": "message", "match": "warranty of a lamp", "content": json.dumps(SAID)},
    {"do": "attentive"},
]
TOPICS = '[[topics]]\nid = "lamp"\ntext = "You want to know how long the warranty of a lamp is."\n'
ASKED = {
    "id": 1,
    "category": "",
    "question": "Why is it so?",
    "reference": "Because.",
    "answer": "It is because.",
}
COMMANDS = (
    "learn log.jsonl --out learnt.json --set without=built-in",
    "learn log.jsonl --out spur.json --method spur --set without=built-in",
    "refit log.jsonl --rubrics learnt.json --model m --out again.json",
    "score log.jsonl --rubrics learnt.json --out scores.jsonl",
    "evaluate log.jsonl --rubrics learnt.json",
    "judge log.jsonl --question done? --set variant=v0 --out verdicts.jsonl",
    "answer asked.jsonl --out answers.jsonl",
    "grade asked.jsonl --plain --out grades.jsonl",
    "simulate --topics topics.toml --systems DS1 --out dialogues.jsonl",
)
"""Each graph at least once; all by a model, so that there are calls to look at."""


def opened(visitor: Visitor, run: str) -> set[str]:
    """Open a run's page, and one of each kind that is linked to and about the run; those there were."""
    waiting = [f"/runs/{run}"]
    kinds = set[str]()
    for path in waiting:
        if (kind := path.partition("?")[0]) in kinds:
            continue
        kinds.add(kind)
        assert visitor.go(path).status == 200, path
        assert visitor.findings() == [], path
        links = visitor.page.locator("main a").evaluate_all(
            "all => all.map(one => one.getAttribute('href'))"
        )
        waiting += [
            link.partition("#")[0] for link in links if run in link and not link.startswith("/api/")
        ]
    return kinds


@pytest.mark.nightly
def test_every_page_of_runs_of_all_graphs_opens(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    write_log(tmp_path / "log.jsonl", 48, words=5)
    (tmp_path / "topics.toml").write_text(TOPICS)
    (tmp_path / "asked.jsonl").write_text(json.dumps(ASKED) + "\n")
    with ProtocolServer(script=SCRIPT) as server:
        for words in COMMANDS:
            model = [] if "--rubrics" in words else ["--model", "m"]  # a set names its own
            command = [
                sys.executable,
                "-m",
                "pollex",
                *words.split(),
                *model,
                "--base-url",
                server.url,
            ]
            ended = subprocess.run(
                command, cwd=tmp_path, check=False, capture_output=True, text=True
            )
            assert ended.returncode in (0, 3), f"{words}: {ended.stderr}"
    visitor = visit(serve(tmp_path / ".pollex"))
    runs = visitor.page.request.get(f"{visitor.served.base}/api/runs").json()["runs"]
    assert [run["command"] for run in reversed(runs)] == [words.split()[0] for words in COMMANDS]
    for run in runs:
        kinds = opened(visitor, run["id"])
        wanted = {f"/runs/{run['id']}", "/conversations", "/conversation"}
        # what `evaluate` would ask was answered to `score`
        if run["command"] != "evaluate":
            wanted.add(f"/runs/{run['id']}/calls")
        assert wanted <= kinds
