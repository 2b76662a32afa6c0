"""Commands of the cases, in this process, and a set that is learned once for all of them."""

import contextlib
import json
import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from small_log import Ended
from small_runs import run_here

from fault_cases import ROOT
from pollex.rubrics.rubric_set import RubricSet

Rows = list[dict[str, Any]]


def bikes(most: int | None = None) -> Rows:
    """Return the rows of the bike shop's log, or the first of them."""
    lines = (ROOT / "examples" / "bikes.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[:most]]


def written(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write a log."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(folder: Path, *words: object, code: int = 0) -> Ended:
    """Run a command in a folder; it ends with that exit code."""
    with contextlib.chdir(folder):
        ended = run_here(*words)
    assert ended.code == code, ended.said
    return ended


@cache
def _learned_once() -> TemporaryDirectory[str]:
    """Learn a set from some of the sample log."""
    kept = TemporaryDirectory()
    written(Path(kept.name) / "log.jsonl", bikes(100))
    run(
        Path(kept.name),
        "learn",
        "log.jsonl",
        "--out",
        "r.json",
        "--store",
        "s",
        "--test-fraction",
        0.5,
    )
    return kept


def learned(folder: Path) -> RubricSet:
    """Put a learned set `r.json`, its log `log.jsonl` and its store `s` into the folder."""
    shutil.copytree(_learned_once().name, folder, dirs_exist_ok=True)
    return RubricSet.load(folder / "r.json")
