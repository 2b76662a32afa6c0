"""What prompts tell a judge: the task, what is expected, and the documents that were shown, cut where they are long."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from small_log import small_log
from small_runs import Pollex

from pollex.store.store import Store

DOMAIN = """
assistant = "the desk of a tram company"
task = "learn when the last tram leaves"
user = "a passenger"
ideal_conversation = "The desk names the time and the stop."
expectations = ["name the stop"]
language = "English"
"""
DOCUMENT = "Trams run until one in the night. "
BUDGET = 100


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        running.script([{"do": "attentive"}])
        yield running


def log_with_documents(path: Path) -> str:
    """Conversations, each with a short document and a long one."""
    rows = []
    for row in small_log():
        documents = [{"name": "night", "text": DOCUMENT}, DOCUMENT * 50]
        rows.append(json.dumps(row | {"sources": documents}))
    path.write_text("\n".join(rows))
    return str(path)


def prompts_of(store: str, stage: str) -> list[str]:
    """The prompts of a stage that were sent, as they were sent."""
    with Store.open(Path(store), read_only=True) as opened:
        rows = opened.rows(
            "SELECT r.body FROM calls AS c JOIN requests AS r ON r.key = c.key WHERE c.stage = ?",
            [stage],
        )
        return [str(row["body"]) for row in rows]


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("ask", ["--domain", "domain.toml"]),
        ("judge", ["--question", "Was it good?", "--set", "runs=1", "--set", "domain=domain.toml"]),
        ("learn", ["--domain", "domain.toml", "--rubrics-from", "mine.toml"]),
    ],
)
def test_a_judge_is_told_the_task_what_is_expected_and_documents_cut_to_a_budget(
    verb: str, words: list[str], pollex: Pollex, server: ProtocolServer, tmp_path: Path
) -> None:
    Path("domain.toml").write_text(DOMAIN)
    Path("mine.toml").write_text(
        "[[rubrics]]\ntext = 'The assistant names a stop.'\npolarity = 'sat'\n"
    )
    log = log_with_documents(Path("log.jsonl"))
    model = ("--model", "m", "--base-url", server.url, "--set", f"sources={BUDGET}")
    ended = pollex(verb, log, *words, *model, "--store", "s")
    assert ended.code == 0, ended.err
    said = " ".join((ended.out + ended.err).split())
    assert "the judge is shown documents and results of tools cut, to 100 characters" in said

    prompts = prompts_of("s", "judge")
    assert prompts
    for prompt in prompts:
        assert "learn when the last tram leaves" in prompt
        assert "name the stop" in prompt
        assert DOCUMENT.strip() in prompt, "the short one is whole"
        assert f"the first {BUDGET - len(DOCUMENT)} of {50 * len(DOCUMENT):,} characters" in prompt
