"""Pools of benchmarks whose parent is ended from outside."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SCRIPT = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from leftovers import end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), initializer=end_with_parent) as pool:
        print([pool.submit(abs, number).result() for number in (-1, -2)], flush=True)
        pool.submit(time.sleep, 300).result()
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_of_a_pool_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "pool.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(BENCHMARKS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "[1, 2]\n"
    parent.send_signal(how)
    # All that it started write to the same pipe, so it ends when the last of them does.
    assert parent.communicate(timeout=60)[0] == ""
    assert parent.returncode == -how
