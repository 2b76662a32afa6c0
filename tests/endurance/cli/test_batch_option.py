"""`--batch`: commands that end when calls are handed in, and go on with --resume, to the result of asking at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from protocol_server.replies import completion
from small_log import small_log, write_log
from small_runs import Ended, Pollex

PENDING = 75
DONE = (0, 3)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProtocolServer]:
    with ProtocolServer(script=[{"do": "attentive"}]) as server:
        server.batches.answer = lambda asked: completion(asked, attentive=True)
        monkeypatch.setenv("POLLEX_BASE_URL", server.url)
        monkeypatch.setenv("POLLEX_MODEL", "m")
        yield server


def by_batch(pollex: Pollex, *arguments: object, most: int = 8) -> tuple[int, Ended]:
    """Repeats a command until it is done: how often it was pending, and how it ended."""
    ended = pollex(*arguments, "--batch", "--json")
    for number in range(most):
        if ended.code != PENDING:
            return number, ended
        assert "Go on with: pollex" in ended.err
        assert "--batch --json --resume" in ended.err
        ended = pollex(*arguments, "--batch", "--json", "--resume")
    raise AssertionError(ended.err)


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def paid_twice(server: ProtocolServer) -> int:
    return sum(number - 1 for number in server.batches.paid.values())


@pytest.mark.nightly
def test_learn_and_score_come_to_what_they_come_to_at_once(
    pollex: Pollex, server: ProtocolServer
) -> None:
    log = small_log(each=12)
    write_log(Path("log.jsonl"), log)
    learning = ["learn", "log.jsonl", "--set", "without=built-in", "--test-fraction", 0.5]
    number, ended = by_batch(pollex, *learning, "--out", "batch.json", "--store", "batch")
    assert ended.code in DONE, ended.err
    assert number >= 3  # extraction, the pool, held-out
    with_secret_of("batch", "once")
    assert pollex(*learning, "--out", "once.json", "--store", "once").code in DONE
    assert learned("batch.json") == learned("once.json")

    # Answers of the log that was learned from are in the store: only new conversations go into a
    # batch.
    write_log(Path("longer.jsonl"), small_log(each=16))
    scoring = ["score", "longer.jsonl", "--rubrics", "batch.json"]
    number, ended = by_batch(pollex, *scoring, "--store", "batch", "--out", "batch.jsonl")
    assert ended.code in DONE, ended.err
    assert number >= 1
    assert pollex(*scoring, "--store", "once", "--out", "once.jsonl").code in DONE
    assert [row["netsat"] for row in rows("batch.jsonl")] == [
        row["netsat"] for row in rows("once.jsonl")
    ]
    assert paid_twice(server) == 0


def with_secret_of(one: str, other: str) -> None:
    """Make a store with another's secret, so that prompts are the same."""
    Path(other).mkdir(mode=0o700)
    secret = Path(other, "secret")
    secret.write_bytes(Path(one, "secret").read_bytes())
    secret.chmod(0o600)


def test_a_panel_hands_in_together(pollex: Pollex, server: ProtocolServer) -> None:
    write_log(Path("log.jsonl"), small_log(each=2))
    judging = [
        "judge",
        "log.jsonl",
        "--question",
        "Was it solved?",
        "--panel",
        "n",
        "--ensemble",
        "2",
    ]
    number, ended = by_batch(pollex, *judging, "--set", "variant=v0")
    assert ended.code in DONE, ended.err
    assert (number, len(server.batches.made), paid_twice(server)) == (1, 2, 0)


def test_answers_and_grades_come_by_batch(pollex: Pollex, server: ProtocolServer) -> None:
    asked = [
        {"question_id": n, "question": f"Why {n}?", "reference": "So.", "category": "知识"}
        for n in range(3)
    ]
    Path("q.jsonl").write_text("\n".join(map(json.dumps, asked)))
    server.batches.expire = 1
    number, ended = by_batch(pollex, "answer", "q.jsonl")
    assert (ended.code, number) == (0, 2), ended.err
    number, ended = by_batch(pollex, "grade", "q.jsonl", "--answers", "answers.jsonl")
    assert ended.code in DONE, ended.err
    assert number >= 1
    assert paid_twice(server) == 0


def test_a_plan_tells_both_prices(pollex: Pollex, server: ProtocolServer) -> None:
    Path("q.jsonl").write_text(
        json.dumps({"question_id": 1, "question": "Why?", "category": "知识"})
    )
    ended = pollex(
        "answer",
        "q.jsonl",
        "--dry-run",
        "--json",
        "--set",
        "price=1:2",
        "--set",
        "batch_discount=0.25",
    )
    costs = json.loads(ended.out.splitlines()[-1])["costs"]
    assert 0 < costs["by_batch"] == pytest.approx(0.75 * costs["at_once"])
    assert "with --batch" in pollex("answer", "q.jsonl", "--dry-run", "--set", "price=1:2").out


def test_files_need_no_server(pollex: Pollex) -> None:
    Path("q.jsonl").write_text(
        json.dumps({"question_id": 1, "question": "Why?", "category": "知识"})
    )
    answering = ["answer", "q.jsonl", "--model", "m", "--set", "batch_files=batches"]
    ended = pollex(*answering)
    assert ended.code == PENDING
    assert "vllm run-batch -i" in ended.err
    (asked,) = Path("batches").glob("*.jsonl")
    row = json.loads(asked.read_text())
    answer = {
        "custom_id": row["custom_id"],
        "response": {"status_code": 200, "body": completion(row["body"])},
    }
    asked.with_suffix(".answers.jsonl").write_text(json.dumps(answer))
    assert pollex(*answering, "--resume").code == 0
    assert rows("answers.jsonl")[0]["answer"]


def learned(path: str) -> Any:
    kept = json.loads(Path(path).read_text())
    return [(rubric["text"], rubric["polarity"]) for rubric in kept["rubrics"]], kept["theta"]
