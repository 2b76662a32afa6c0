"""Lines that an assistant's process sends: what its host doesn't write is told from what it does."""

import json
from typing import Any

import pytest

from pollex.rooms.remedy.agents.assistant_process import name_signal, parse_host_message

CALL = {"name": "look", "arguments": "{}", "id": "a"}
REPLY = {"text": "Yes.", "calls": [CALL], "cost": 0.0, "seconds": 0.1}


@pytest.mark.parametrize(
    "line",
    [
        5,
        [],
        {},
        {"id": 1},
        {"id": [1], "begun": True},
        {"id": 1, "found": {}},
        {"id": 1, "found": REPLY | {"calls": [{"name": "look"}]}},
        {"id": 1, "found": REPLY | {"cost": "much"}},
        {"id": 1, "found": REPLY | {"cost": float("nan")}},
        {"id": 1, "found": REPLY | {"seconds": float("inf")}},
        {"id": 1, "found": REPLY | {"cost": -1}},
        {"id": 1, "found": REPLY | {"calls": [CALL | {"arguments": 5}]}},
        {"id": 1, "found": REPLY | {"calls": [CALL | {"id": {}}]}},
        {"id": 1, "found": {"kind": 3, "detail": "x"}},
        {"id": 1, "found": {"kind": "\x1b[31m", "detail": "x"}},
        {"id": 1, "found": REPLY | {"text": "x" * 1_000_001}},
        {"ready": "shop"},
        {"failed": 3},
    ],
)
def test_foreign_lines_are_refused(line: Any) -> None:
    with pytest.raises(ValueError, match="no "):
        parse_host_message(json.dumps(line).encode())


@pytest.mark.parametrize(
    "line",
    [
        {"ready": "shop", "acts": []},
        {"failed": "ImportError"},
        {"id": 1, "begun": True},
        {"id": 1, "found": REPLY},
        {"id": 1, "found": {"kind": "error", "detail": "x"}},
    ],
)
def test_lines_of_the_host_are_taken(line: Any) -> None:
    assert parse_host_message(json.dumps(line).encode()) == line


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert (name_signal(9), name_signal(40)) == ("SIGKILL", "40")
