"""A room can be taken away as a folder: all others work on, its verbs are gone, and an error says what to install."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rooms import ROOMS, ROOT
from small_log import small_log, write_log

CODE = ("pollex", "graphs", "prompts", "selection", "calibration", "examples")
SERVE = """
import asyncio
from pathlib import Path

import pollex.studio.graphs
from pollex.store.store import Store
from web_site import client_of, made_app


async def statuses():
    with Store.open(Path("store")) as store:
        async with client_of(made_app(store)) as client:
            return [(await client.get(path)).status_code for path in ("/", "/runs", "/sets")]


print(asyncio.run(statuses()), pollex.studio.graphs.score.get_name(), "learn" in pollex.__all__)
"""


@pytest.mark.parametrize(
    "rooms", [ROOMS, *(pytest.param([room], marks=pytest.mark.nightly) for room in ROOMS)], ids=str
)
def test_the_core_works_without_a_room(rooms: list[str], tmp_path: Path) -> None:
    for folder in CODE:
        ignored = shutil.ignore_patterns("__pycache__", "recorded")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignored)
    for room in rooms:
        shutil.rmtree(tmp_path / "pollex" / "rooms" / room)
    write_log(tmp_path / "log.jsonl", small_log())

    def run(*words: str, code: int = 0) -> str:
        paths = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
        done = subprocess.run(
            [sys.executable, *words],
            env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    told = run("-m", "pollex", "--help")
    gone = [verb for room in rooms for verb in verbs_of(room)]
    assert [verb for verb in gone if f"\n  {verb} " in told] == []
    assert "\n  learn " in told
    for room in rooms:
        refused = run("-m", "pollex", verbs_of(room)[0], code=2)
        assert "pip install 'pollex[all]'" in refused, refused
    learn = ("learn", "log.jsonl", "--out", "set.json", "--store", "store")
    run("-m", "pollex", *learn)
    scored = run(
        *("-m", "pollex", "score", "log.jsonl", "--rubrics", "set.json", "--out", "scores.jsonl"),
        *("--store", "store"),
    )
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").open(encoding="utf-8")]
    assert len(rows) == len(small_log()), scored
    assert run("-c", SERVE).splitlines()[-1] == "[200, 200, 200] score True"


def verbs_of(room: str) -> list[str]:
    """Return the verbs that only a room has, by the modules that its floor plan has."""
    core = ROOT / "pollex" / "usecases"
    modules = (ROOT / "pollex" / "rooms" / room / "usecases").glob("[!_]*.py")
    return sorted(module.stem for module in modules if not (core / module.name).exists())
