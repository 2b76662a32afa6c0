"""Every benchmark runs in its small form, in a process of its own, and reaches its bars."""

import json
import multiprocessing
import os
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = [
    path
    for path in sorted((ROOT / "benchmarks").glob("*.py"))
    if '__name__ == "__main__"' in path.read_text()
]
LONG = {
    "active_learning",
    "chain",
    "distill",
    "evidence",
    "gateway",
    "planted_world",
    "published",
    "ray_scaling",
    "remedy",
    "remedy_command",
    "rubicon",
    "scoring",
    "service",
    "share",
    "stability",
    "starter",
    "upload",
}
"""Those that take longer than ten seconds, most since they start commands or learn several times."""
ELSEWHERE = {"faults": "test_faults_made_anew.py runs its cases one by one"}

# A server of forks imports once what nearly all benchmarks import: that is most of the time of a
# small form.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch", "sentence_transformers", "langgraph.graph", "pollex", "rubicon"]
)
LONGEST = 300
"""Seconds; on an idle machine ten are enough."""


def small_form(program: Path, folder: Path) -> None:
    """Run a benchmark as from a shell in `folder`, where its figures and its words are kept."""
    os.chdir(folder)
    with Path("printed.txt").open("w", encoding="utf-8") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        sys.argv = [str(program), "--quick", "--json", str(folder / "figures.json")]
        sys.path.insert(0, str(program.parent))
        runpy.run_path(str(program), run_name="__main__")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.nightly] * (path.stem in LONG))
        for path in PROGRAMS
    ],
)
def test_the_small_form_of_a_benchmark_reaches_its_bars(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program.stem in ELSEWHERE:
        pytest.skip(ELSEWHERE[program.stem])
    for library in ("OMP", "OPENBLAS"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")
    process = FORKS.Process(target=small_form, args=(program, tmp_path))
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0, (tmp_path / "printed.txt").read_text("utf-8")[-4000:]
    content = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert content["bars"]
    assert all(content["bars"].values())
