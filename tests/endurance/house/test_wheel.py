"""A wheel has the project's files, and nobody's conversations."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from rooms import ROOT

STRAY = ("pollex-demo/log.jsonl", "pollex-demo/.pollex/texts/a.json", ".pollex/runs/a.json")
STRAY_EXAMPLES = ("mine.jsonl", "report.html", "rubrics.json", "rubrics.rubrics.toml")


def test_a_wheel_that_is_built_in_a_dirty_folder_holds_nothing_of_its_users(tmp_path: Path) -> None:
    dirty = tmp_path / "checkout"
    left_out = shutil.ignore_patterns(
        ".*", "build", "dist", "tests", "docs", "benchmarks", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, dirty, symlinks=True, ignore=left_out)
    for name in (*STRAY, *(f"examples/{name}" for name in STRAY_EXAMPLES)):
        (dirty / name).parent.mkdir(parents=True, exist_ok=True)
        (dirty / name).write_text("{}")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*build, "--wheel-dir", tmp_path, dirty], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    found = {Path(name) for name in ZipFile(wheel).namelist()}
    assert {path.parts[0] for path in found} == {
        "pollex",
        f"{'-'.join(wheel.name.split('-')[:2])}.dist-info",
    }
    assert not [
        path
        for path in found
        if path.parent == Path("pollex/examples") and path.name in STRAY_EXAMPLES
    ]
    assert {path.name for path in found if path.suffix == ".jsonl"} == {
        "bikes.jsonl",
        "debugging.jsonl",
        "questions.jsonl",
    }
    assert not [path for path in found if "demo" in path.parts or ".pollex" in path.parts]
    assert Path("pollex/cli/main.py") in found
