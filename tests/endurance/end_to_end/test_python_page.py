"""The page on Python runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.nightly
def test_the_page_on_python_runs_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/python.md").read_text("utf-8")
    log = (ROOT / "examples/bikes.jsonl").read_text("utf-8").splitlines(keepends=True)
    for name, rows in (("logs", log[:60]), ("before", log[60:80]), ("after", log[80:100])):
        (tmp_path / f"{name}.jsonl").write_text("".join(rows), "utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) > 5
    (tmp_path / "page.py").write_text("\n".join(blocks), "utf-8")
    ended = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "scores.parquet").exists()
