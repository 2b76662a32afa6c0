"""What an agent sends and reads holds no half characters, and what it can't be told says where that is."""

import io
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import Learnt, Pollex

from pollex.errors import WrongUse
from pollex.rooms.exchange.cli.agent_server import RepairedRequestLines, repair_request_line
from pollex.rooms.exchange.services.agent_tools import AgentTools
from pollex.store.database import DATABASE_FILE_NAME
from pollex.text import SURROGATE_PATTERN


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "\udc00\ud800", "\\ud800", "whole \U0001f600", "", "ünï"]
)
def test_half_characters_of_a_line_become_whole_ones_and_everything_else_stays(text: str) -> None:
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": text, text: [text]},
    }
    line = json.dumps(asked).encode() + b"\n"
    found = repair_request_line(line)
    assert found.endswith(b"\n")
    assert SURROGATE_PATTERN.search(json.loads(found)["params"]["name"]) is None
    if not SURROGATE_PATTERN.search(text):
        assert json.loads(found) == asked
    source = io.BytesIO(line * 3 + b"no \\ud800 json\n")
    assert io.BufferedReader(RepairedRequestLines(source)).readlines() == [found] * 3 + [
        b"no \\ud800 json\n"
    ]


def test_a_comparison_that_needs_arrays_says_which_file_they_stand_in(
    learnt: Learnt, tmp_path: Path
) -> None:
    # A store of an earlier pollex has sets without their arrays.
    earlier = shutil.copytree(learnt.store, tmp_path / "earlier")
    with sqlite3.connect(earlier / DATABASE_FILE_NAME) as database:
        database.execute("DELETE FROM facts WHERE kind = 'arrays'")
    tools = AgentTools(earlier)
    with pytest.raises(WrongUse, match=r"they stand in .*rubrics-[0-9a-f]+\.safetensors"):
        tools.compare("learn-1", "learn-1")
    assert "learn-1" in AgentTools(learnt.store, [learnt.rubrics]).compare("learn-1", "learn-1")


@pytest.mark.parametrize("words", [[], ["rubrics"]])
def test_no_verb_shows_the_help(words: list[str], pollex: Pollex) -> None:
    ended = pollex(*words)
    assert "Usage: " in ended.err
    assert "Commands" in ended.err or "Start" in ended.err
    assert "unexpected" not in ended.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(
    shell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_POLLEX_COMPLETE", f"{shell}_source")
    code = "import sys; sys.argv[0] = 'pollex'; from pollex.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "_POLLEX_COMPLETE" in ended.stdout, ended.stderr
