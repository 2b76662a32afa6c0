"""Requests of an agent as they reach the package: each has an answer, or an error for its id."""

import io
import json
from typing import Any

import pytest

from pollex.rooms.exchange.cli.agent_server import UNREADABLE, MendedLines, mended

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
    request = json.loads(mended((CALL % arguments).encode()))
    assert (request["id"], request["method"]) == (7, UNREADABLE)


def test_a_sound_request_stays_what_it_says() -> None:
    line = (CALL % '{"offset": 3, "below": 0.5, "run": "\\ud800"}').encode()
    arguments: dict[str, Any] = json.loads(mended(line))["params"]["arguments"]
    assert arguments == {"offset": 3, "below": 0.5, "run": "\ufffd"}


def test_each_request_of_a_list_is_refused_for_itself() -> None:
    lines = MendedLines(io.BytesIO(f"[{CALL % 1}, {CALL % 2}]\n".encode()))
    assert [json.loads(line)["id"] for line in io.BufferedReader(lines)] == [7, 7]
