"""A room can be taken away as a folder: all others work on, its verbs are gone, and an error says what to install."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rooms import ROOMS, ROOT
from small_log import small_log, write_log

from pollex.rooms import list_hooks
from pollex.store.hooks import StoreTable
from pollex.store.store import Store

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
def test_the_core_works_without_a_room(
    rooms: list[str], store_of_all_rooms: Path, tmp_path: Path
) -> None:
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

    # the database is made anew, and what the room has in it stays there
    before = rows_of_rooms(store_of_all_rooms)
    rebuilt = run("-m", "pollex", "doctor", "--rebuild", "--store", str(store_of_all_rooms))
    assert rows_of_rooms(store_of_all_rooms) == before, rebuilt
    assert all(len(rows) == 1 for rows in before)


@pytest.fixture
def store_of_all_rooms(tmp_path: Path) -> Path:
    """A store in which each room that has tables there keeps a row in each."""
    folder = tmp_path / "store_of_all_rooms"
    empty = {"INTEGER": 0, "REAL": 0.0, "TEXT": ""}
    with Store.open(folder) as store:
        for table in tables_of_rooms():
            kinds = [column["type"] for column in store.rows(f"PRAGMA table_info({table})")]
            places = ", ".join("?" * len(kinds))
            with store.database.transaction() as connection:
                row = [empty[kind] for kind in kinds]
                connection.execute(f"INSERT INTO {table} VALUES ({places})", row)
    return folder


def tables_of_rooms() -> list[str]:
    return [table.kind.table for table in list_hooks(StoreTable)]


def rows_of_rooms(folder: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(folder / "store.sqlite")) as database:
        return [
            database.execute(f"SELECT * FROM {table}").fetchall() for table in tables_of_rooms()
        ]


def verbs_of(room: str) -> list[str]:
    """Return the verbs that only a room has, by the modules that its floor plan has."""
    core = ROOT / "pollex" / "usecases"
    modules = (ROOT / "pollex" / "rooms" / room / "usecases").glob("[!_]*.py")
    return sorted(module.stem for module in modules if not (core / module.name).exists())
