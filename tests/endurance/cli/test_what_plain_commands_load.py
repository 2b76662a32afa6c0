"""Learning and scoring without a model, each in a process of its own, load nothing that they don't need."""

import subprocess
import sys
from pathlib import Path

import pytest

LOG = Path(__file__).parents[3] / "examples" / "debugging.jsonl"
RUN = """
import sys
from pollex.cli.main import pollex
pollex.main(sys.argv[2:], standalone_mode=False)
loaded = sys.modules.keys() & set(sys.argv[1].split(","))
assert not loaded, loaded
ours = [name for name in sys.modules if name.partition(".")[0] == "pollex"]
assert sys.argv[2] != "score" or len(ours) <= 160, len(ours)
"""
LLM = "pollex.agents.llm,pollex.services.plan"
UNWANTED = "torch._dynamo,sentence_transformers,transformers,matplotlib"


@pytest.mark.timeout(600)
def test_learning_loads_embedder_and_compiler_once_and_scoring_no_torch_at_all(tmp_path: Path) -> None:
    # The first `learn` embeds turns for clusters and rubrics for duplicates, and sentence-transformers brings a
    # compiler with it; the second finds all vectors kept.
    for unwanted, arguments in (
        ("matplotlib", ["learn", str(LOG), "--out", "rubrics.json"]),
        (UNWANTED, ["learn", str(LOG), "--out", "rubrics.json"]),
        (UNWANTED + ",torch," + LLM, ["score", str(LOG), "--rubrics", "rubrics.json", "--out", "scores.jsonl"]),
    ):
        ended = subprocess.run(
            [sys.executable, "-c", RUN, unwanted, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "scores.jsonl").exists()
