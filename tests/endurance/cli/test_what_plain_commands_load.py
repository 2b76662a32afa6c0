"""Learning and scoring without a model, in a process of their own, load nothing that they don't need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOG = Path(__file__).parents[3] / "examples" / "debugging.jsonl"
COMMANDS = """
import sys
from pollex.cli.main import pollex
pollex.main(["learn", sys.argv[1], "--out", "rubrics.json"], standalone_mode=False)
pollex.main(["score", sys.argv[1], "--rubrics", "rubrics.json", "--out", "scores.jsonl"], standalone_mode=False)
loaded = sys.modules.keys() & {"torch", "sentence_transformers", "transformers", "matplotlib", "openvino_telemetry"}
assert not loaded, loaded
"""


@pytest.mark.timeout(600)
def test_embedding_learning_and_scoring_need_no_torch(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COMMANDS, str(LOG)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "scores.jsonl").exists()
