"""What a user waits for is told on a terminal, and nowhere else."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pollex.errors import Interrupted
from pollex.graphs.context import NullProgress
from pollex.runs.workspace import StoppableProgress

READ = (
    "import sys; from pollex.formats.fields import ReadOptions; from pollex.services.logs import logs_from; "
    "from pollex.cli.session import Screen\nwith Screen(as_json=True) as screen: "
)
COUNT = "print(len(logs_from(sys.argv[1:], ReadOptions(), screen)))"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    path.write_text(json.dumps({"id": "a", "messages": turns}) + "\n")
    return path


def test_a_terminal_is_told_that_the_log_is_being_read(log: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", READ + COUNT, str(log)]
    subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    told = os.read(ours, 10_000)
    os.close(ours)
    assert b"Reading the log" in told


def test_a_file_is_told_nothing_of_it(log: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", READ + COUNT, str(log)], capture_output=True, check=True
    )
    assert shown.stdout == b"1\n"
    assert b"Reading the log" not in shown.stderr


def test_a_long_computation_ends_at_its_next_report_once_the_user_stopped_the_run() -> None:
    progress = StoppableProgress(NullProgress())
    progress.start("write", 3)
    progress.advance("write")
    progress.stopped = True
    with pytest.raises(Interrupted):
        progress.advance("write")
