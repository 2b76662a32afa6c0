"""Learning and scoring without a model, each in a process of its own, load nothing that they don't need."""

import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import Learnt

RUN = """
import sys
from pollex.cli.main import pollex
pollex.main(sys.argv[2:], standalone_mode=False)
loaded = sys.modules.keys() & set(sys.argv[1].split(","))
assert not loaded, loaded
ours = [name for name in sys.modules if name.partition(".")[0] == "pollex"]
assert sys.argv[2] != "score" or len(ours) <= 170, len(ours)
"""
UNWANTED = "torch._dynamo,sentence_transformers,transformers,matplotlib"
LLM = "pollex.agents.llm,pollex.runs.plan"


@pytest.mark.nightly
def test_learning_from_turns_that_are_embedded_loads_no_embedder_and_scoring_no_torch_at_all(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    log = str(learnt.log)
    for unwanted, arguments in (
        (UNWANTED, ["learn", log, "--out", "rubrics.json", "--store", str(store)]),
        (
            f"{UNWANTED},torch,{LLM}",
            ["score", log, "--rubrics", str(learnt.rubrics), "--out", "scores.jsonl"],
        ),
    ):
        ended = subprocess.run(
            [sys.executable, "-c", RUN, unwanted, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "scores.jsonl").exists()
