"""Requests of an agent as they reach the package: each has an answer, or an error for its id."""

import io
import json
from typing import Any

import pytest

from pollex.rooms.exchange.cli.agent_server import (
    MAX_REQUEST_BYTES,
    UNREADABLE_REQUEST_MESSAGE,
    RepairedRequestLines,
    repair_request_line,
)

CALL = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "scores", "arguments": %s}}'


@pytest.mark.parametrize(
    "arguments",
    [
        '{"offset": 1' + "0" * 30 + "}",
        '{"below": 1e999}',
        '{"below": NaN}',
        '{"offset": ' + "9" * 5000 + "}",
        '{"run": "\\ud800", "offset": ' + "9" * 5000 + "}",
        '{"run": ' + "[" * 5000 + '"\\ud800"' + "]" * 5000 + "}",
        '{"run": ' + "[" * 5000 + "1" + "]" * 5000 + "}",
        "{",
    ],
)
def test_a_request_that_cannot_be_read_becomes_one_that_is_refused(arguments: str) -> None:
    request = json.loads(repair_request_line((CALL % arguments).encode()))
    assert (request["id"], request["method"]) == (7, UNREADABLE_REQUEST_MESSAGE)


def test_a_sound_request_stays_what_it_says() -> None:
    line = (CALL % '{"offset": 3, "below": 0.5, "run": "\\ud800"}').encode()
    arguments: dict[str, Any] = json.loads(repair_request_line(line))["params"]["arguments"]
    assert arguments == {"offset": 3, "below": 0.5, "run": "\ufffd"}


def test_each_request_of_a_list_is_refused_for_itself() -> None:
    lines = RepairedRequestLines(io.BytesIO(f"[{CALL % 1}, {CALL % 2}]\n".encode()))
    assert [json.loads(line)["id"] for line in io.BufferedReader(lines)] == [7, 7]


def test_an_id_among_the_arguments_is_not_the_requests() -> None:
    request = '{"params": {"id": 555, "text": "\\"id\\": 6", "offset": 1e999}, "id": 7}'
    for line in (request, f"[{request}]"):
        assert [
            json.loads(refused)["id"] for refused in repair_request_line(line.encode()).splitlines()
        ] == [7]


@pytest.mark.parametrize("order", ['{{"id": 7, "params": {}}}', '{{"params": {}, "id": 7}}'])
def test_a_request_that_is_too_long_is_refused_and_the_next_one_read(order: str) -> None:
    long = order.format('{"id": 5, "text": "' + "x" * (MAX_REQUEST_BYTES + 10) + '"}')
    lines = RepairedRequestLines(io.BytesIO(f"{long}\n{CALL % '{}'}\n".encode()))
    requests = [json.loads(line) for line in io.BufferedReader(lines)]
    assert [(request["id"], request["method"]) for request in requests] == [
        (7, UNREADABLE_REQUEST_MESSAGE),
        (7, "tools/call"),
    ]
