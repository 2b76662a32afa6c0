"""Every benchmark runs in its small form, in a plain interpreter, and reaches its bars."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = [path for path in sorted((ROOT / "benchmarks").glob("*.py")) if '__name__ == "__main__"' in path.read_text()]
LONG = {"active_learning", "chain", "distill", "planted_world", "ray_scaling", "rubicon_tables", "scoring", "starter"}
"""Those that learn several times, or start a server or workers."""
ELSEWHERE = {"faults": "test_faults_made_anew.py runs its cases one by one"}


@pytest.mark.parametrize(
    "program",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.nightly] * (path.stem in LONG)) for path in PROGRAMS],
)
def test_the_small_form_of_a_benchmark_reaches_its_bars(program: Path, tmp_path: Path) -> None:
    if program.stem in ELSEWHERE:
        pytest.skip(ELSEWHERE[program.stem])
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    plain |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS")}
    out = tmp_path / "figures.json"
    command = [sys.executable, str(program), "--quick", "--json", str(out)]
    ended = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    content = json.loads(out.read_text("utf-8"))
    assert content["bars"]
    assert all(content["bars"].values())
