"""A cluster of two workers: one is killed, then the driver; the result is that of one machine, byte by byte."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt

from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.rooms.scale.services.score_parts import score_in_parts
from pollex.runs.options import ModelOptions

pytest.importorskip("ray", reason='pip install "pollex[ray]"')

UNIT_BYTES = 3000
DRIVER = """
import sys
from pathlib import Path
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.runs.options import ModelOptions
from pollex.rooms.scale.services.score_parts import score_in_parts

log, rubrics, out, unit_bytes = sys.argv[1:]
given = dict(reading=ReadOptions(), model=ModelOptions(), progress=NullProgress(), unit_bytes=int(unit_bytes))
found = score_in_parts(log, Path(rubrics), out=out, workers=2, **given)
print(len(found.lost), found.there)
"""


def driver(log: Path, rubrics: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER, str(log), str(rubrics), str(out), str(UNIT_BYTES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers(parent: int) -> list[int]:
    """Processes of the cluster's actors that some process began."""
    processes = [place for place in Path("/proc").iterdir() if place.name.isdigit()]
    found = [
        int(place.name) for place in processes if _read(place / "cmdline").startswith("ray::Worker")
    ]
    return [pid for pid in found if parent in ancestors(pid)]


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        status = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        if len(status) < 2:
            break
        pid = int(status[1])
        found.add(pid)
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def wait_for(folder: Path, running: subprocess.Popen[str], parts: int) -> None:
    while running.poll() is None and len(list(folder.glob("part-*.parquet"))) < parts:
        time.sleep(0.02)


def test_a_killed_worker_and_a_killed_driver_cost_their_units_and_nothing_else(
    learnt: Learnt, tmp_path: Path
) -> None:
    log = write_log(
        tmp_path / "log.jsonl",
        [{**one, "id": f"{n}-{one['id']}"} for n in range(12) for one in small_log()],
    )
    given = {
        "reading": ReadOptions(),
        "model": ModelOptions(),
        "progress": NullProgress(),
        "unit_bytes": UNIT_BYTES,
    }
    wanted = score_in_parts(
        str(log), learnt.rubrics, out=str(tmp_path / "one"), engine="one", **given
    )
    out = tmp_path / "many"

    first = driver(log, learnt.rubrics, out)
    wait_for(out, first, 1)
    victim, *_ = workers(first.pid)
    os.kill(victim, signal.SIGKILL)
    wait_for(out, first, len(wanted.parts) // 3)
    first.kill()
    first.communicate()
    done = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert 0 < len(done) < len(wanted.parts)
    assert not (out / "manifest.json").exists()

    second = driver(log, learnt.rubrics, out)
    printed, errors = second.communicate()
    assert second.returncode == 0, errors
    lost, there = map(int, printed.split())
    assert lost == 0
    assert there >= len(done)
    for part in wanted.parts:
        assert (out / part.file).read_bytes() == (tmp_path / "one" / part.file).read_bytes()
    assert all((out / name).stat().st_mtime_ns == when for name, when in done.items())
    assert (out / "manifest.json").read_bytes() == (tmp_path / "one" / "manifest.json").read_bytes()


@pytest.mark.nightly
def test_workers_leave_with_a_driver_that_was_killed(learnt: Learnt, tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "log.jsonl",
        [{**one, "id": f"{n}-{one['id']}"} for n in range(40) for one in small_log()],
    )
    running = driver(log, learnt.rubrics, tmp_path / "out")
    wait_for(tmp_path / "out", running, 1)
    begun = workers(running.pid)
    assert begun
    running.kill()
    running.communicate()
    for _ in range(600):
        if not any(Path(f"/proc/{pid}").exists() for pid in begun):
            return
        time.sleep(0.1)
    pytest.fail("workers of a killed driver go on")
