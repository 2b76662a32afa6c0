"""Help is there at once: what works is loaded when it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_help_teaches_by_example_and_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pollex.cli.main import pollex\n"
        "pollex(['label', 'next', '--help'], standalone_mode=False)\n"
        "workers = {'duckdb', 'langchain_core', 'langgraph', 'numpy', 'openai', 'scipy', 'sklearn', 'torch'}\n"
        "assert not workers & set(sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "pollex label next logs.jsonl --rubrics rubrics.json" in ended.stdout


def test_pages_are_there_before_scipy_and_langgraph() -> None:
    code = (
        "import sys\nfrom pollex.web.app import list_routes\nlist_routes()\n"
        "assert not {'langgraph', 'scipy', 'sklearn', 'torch'} & set(sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.nightly
def test_blas_has_one_thread_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    code = (
        "import os, sys; from click.testing import CliRunner; from pollex.cli.main import pollex\n"
        "CliRunner().invoke(pollex, ['calibrate', 'predict', '.', 'a.csv'])\n"
        "assert 'numpy' in sys.modules\n"
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    plain = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for said, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=plain | said,
        )
        assert (ended.stdout.strip(), ended.stderr) == (threads, "")
