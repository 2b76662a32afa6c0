"""What somebody said stays what it is, also where it is JSON text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollex.formats.read_logs import read_logs

Rows = Callable[[str, str], list[dict[str, Any]]]


def langsmith(asked: str, answered: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "r",
            "run_type": "chain",
            "inputs": {"question": asked},
            "outputs": {"answer": answered},
        }
    ]


def langfuse(asked: str, answered: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "t",
            "timestamp": "2026-01-01T00:00:00Z",
            "userId": "u",
            "sessionId": "s",
            "bookmarked": False,
            "public": False,
            "input": {"args": [asked], "kwargs": {}},
            "output": answered,
        }
    ]


def mlflow(asked: str, answered: str) -> list[dict[str, Any]]:
    attributes = {
        "mlflow.spanType": json.dumps("CHAIN"),
        "mlflow.spanInputs": json.dumps({"question": asked}),
        "mlflow.spanOutputs": json.dumps(answered),
    }
    span = {
        "trace_id": "t",
        "span_id": "s",
        "parent_span_id": None,
        "name": "turn",
        "attributes": attributes,
    }
    return [{"info": {"trace_id": "t", "trace_metadata": {}}, "data": {"spans": [span]}}]


def opik(asked: str, answered: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "t",
            "thread_id": "s",
            "start_time": "2026-01-01T00:00:00Z",
            "feedback_scores": [],
            "input": {"question": asked},
            "output": {"output": answered},
        }
    ]


def braintrust(asked: str, answered: str) -> list[dict[str, Any]]:
    span = {
        "id": "1",
        "span_id": "1",
        "root_span_id": "1",
        "span_attributes": {"type": "task"},
        "metadata": {},
    }
    return [span | {"input": asked, "output": answered, "scores": {}}]


def weave(asked: str, answered: str) -> list[dict[str, Any]]:
    call = {"id": "c", "trace_id": "t", "op_name": "turn", "started_at": "2026-01-01T00:00:00Z"}
    return [call | {"inputs": {"question": asked}, "output": answered}]


def openinference(asked: str, answered: str) -> list[dict[str, Any]]:
    have = {"openinference.span.kind": "CHAIN", "input.value": asked, "output.value": answered}
    have |= {"input.mime_type": "text/plain", "output.mime_type": "text/plain"}
    attributes = [{"key": name, "value": {"stringValue": value}} for name, value in have.items()]
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "startTimeUnixNano": "1",
        "attributes": attributes,
    }
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]


def events(asked: str, answered: str) -> list[dict[str, Any]]:
    said = {
        "gen_ai.user.message": {"content": asked},
        "gen_ai.choice": {"message": {"content": answered}},
    }
    listed = [
        {
            "name": name,
            "attributes": [
                {"key": k, "value": {"stringValue": _written(v)}} for k, v in have.items()
            ],
        }
        for name, have in said.items()
    ]
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "startTimeUnixNano": "1",
        "attributes": [],
        "events": listed,
    }
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def exchanges(asked: str, answered: str) -> list[dict[str, Any]]:
    return [{"prompt": asked, "response": answered}]


def chats(asked: str, answered: str) -> list[dict[str, Any]]:
    messages = [
        {"id": "1", "role": "user", "content": asked},
        {"id": "2", "role": "assistant", "content": answered},
    ]
    return [{"id": "a", "messages": messages}]


ASKED = (
    *(
        '{"serial": "A-1"}',
        '{"a": 1, "b": 2}',
        "[1, 2]",
        '["eins", "zwei"]',
        '"quoted words"',
        "17",
        "null",
        "{'a': 1}",
    ),
    *(
        '{"text": "hi", "lang": "de"}',
        '{"question": "hi"}',
        '{"role": "admin", "rights": []}',
        "[]",
        "{}",
    ),
)
ANSWERED = (
    *(
        '{"brand": "Acme", "model": "X-200"}',
        "[1, 2, 3]",
        '["a", "b"]',
        '{"status": "ok"}',
        '"yes"',
        "true",
    ),
    *('{"answer": "ok", "sure": 0.9}', '[{"type": "bike", "price": 300}]'),
)


@pytest.mark.parametrize(
    "tool",
    [langsmith, langfuse, mlflow, opik, braintrust, weave, openinference, events, exchanges, chats],
)
def test_words_that_are_json_text_stay_as_they_were_said(tool: Rows, tmp_path: Path) -> None:
    said = [(words, "ok") for words in ASKED] + [("q", words) for words in ANSWERED]
    wrong = {}
    for asked, answered in said:
        rows = tool(asked, answered)
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = [
            [turn.content for turn in talk.turns] for talk in read_logs(tmp_path / "log.jsonl")
        ]
        if found != [[asked, answered]]:
            wrong[asked, answered] = found
    assert wrong == {}


def test_a_structured_answer_of_an_object_is_shown_as_json(tmp_path: Path) -> None:
    row = langfuse("Which model?", "")[0] | {"output": {"brand": "Acme", "model": "X-200"}}
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    logs = read_logs(tmp_path / "log.jsonl")
    assert [turn.content for turn in logs.conversations[0].turns] == [
        *("Which model?", '{"brand": "Acme", "model": "X-200"}')
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"args": ["words"], "kwargs": {}}, "words"),
        ({"args": [], "kwargs": {"question": "words"}}, "words"),
        ({"args": ["what is it?", "s-1"], "kwargs": {}}, "what is it?"),
    ],
)
def test_arguments_of_a_traced_function_are_no_envelope_of_a_message(
    given: object, words: str, tmp_path: Path
) -> None:
    row = langfuse("", "ok")[0] | {"input": given}
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    assert read_logs(tmp_path / "log.jsonl").conversations[0].turns[0].content == words
