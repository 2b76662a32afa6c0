"""A signal while a command still imports ends it in words."""

import os
import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, sys

module, number, *words = sys.argv[1:]

class Sending:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Sending())
from pollex.cli.entry import main
sys.argv = ["pollex", *words]
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("pollex.cli.main", signal.SIGINT),
        ("click", signal.SIGTERM),
        ("pollex.usecases.learn", signal.SIGHUP),
    ],
)
def test_a_signal_while_a_command_imports_is_told(module: str, number: signal.Signals) -> None:
    words = ["learn", "log.jsonl", "--out", "r.json"]
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, str(int(number)), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (ended.returncode, ended.stderr.splitlines()) == (
        130,
        ["Stopped: interrupted", "Go on with: pollex learn log.jsonl --out r.json"],
    )
