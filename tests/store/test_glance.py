"""Looking into a store while another process writes in it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pollex.errors import StoreBusy, WrongUse
from pollex.store import glance as glances
from pollex.store.glance import glance
from pollex.store.store import Store

# Begins a run for each line that comes in, and says its id once it is durable.
WRITER = """
import sys
from pathlib import Path
from pollex.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    print("open", flush=True)
    for line in sys.stdin:
        if line.strip() == "checkpoint":
            store._database.execute("CHECKPOINT")
            print("checkpoint", flush=True)
        else:
            print(store.begin("learn", arguments={}, fingerprint={}, versions={}).id, flush=True)
"""


class Writer:
    """A process that holds the store."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", WRITER, str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.heard() == "open"

    def heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def told(self, word: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.heard()


@pytest.fixture
def writer(folder: Path) -> Iterator[Writer]:
    writer = Writer(folder)
    yield writer
    writer.process.communicate()
    assert writer.process.returncode == 0


def runs_seen(folder: Path) -> list[str]:
    with glance(folder) as store:
        return [row["id"] for row in store.rows("SELECT id FROM runs ORDER BY number")]


def test_a_store_at_rest_is_looked_at_itself(folder: Path) -> None:
    Store.open(folder).close()
    with glance(folder) as store:
        assert store.folder == folder
        assert store.notices == []
        with pytest.raises(StoreBusy):
            Store.open(folder)


def test_no_store_is_no_busy_one(folder: Path) -> None:
    with pytest.raises(WrongUse, match="there is no store here"), glance(folder):
        pass


def test_all_that_a_writer_called_durable_is_seen_while_it_goes_on(folder: Path, writer: Writer) -> None:
    begun = []
    for word in ("run", "run", "checkpoint", "run", "checkpoint", "run"):
        said = writer.told(word)
        begun += [said] if said != "checkpoint" else []
        assert runs_seen(folder) == begun
    assert len(begun) == 4


def test_who_works_there_is_said_and_the_copy_goes(folder: Path, writer: Writer) -> None:
    writer.told("run")
    with glance(folder) as store:
        (notice,) = store.notices
        assert f"in use by process {writer.process.pid}" in notice
        copy = store.folder
        assert copy.stat().st_mode & 0o077 == 0
        writer.told("run")  # the copy keeps nobody out
        assert store.value("SELECT count(*) FROM runs") == 1
    assert not copy.exists()
    assert len(runs_seen(folder)) == 2


def test_who_has_no_room_for_a_copy_is_told_who_works_there_and_no_copy_stays(
    folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    writer.told("run")

    def full(_path: Path, to: Path) -> None:
        to.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(glances, "_copy", full)
    with pytest.raises(StoreBusy, match=rf"process {writer.process.pid}, .*No space left.*TMPDIR"), glance(folder):
        pass
    assert not list(tmp_path.glob("pollex-*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreBusy, match="no copy can be made"), glance(folder):
        pass


def test_a_log_cut_in_the_middle_of_an_entry_is_seen_up_to_there(
    folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = [writer.told("run") for _ in range(3)]
    whole = glances._copy

    def cut(path: Path, to: Path) -> None:
        whole(path, to)
        if to.name.endswith("wal"):
            os.truncate(to, to.stat().st_size - 20)

    monkeypatch.setattr(glances, "_copy", cut)
    seen = runs_seen(folder)
    assert seen == begun[: len(seen)]
    assert len(seen) == 2


def test_a_copy_that_the_writer_changed_meanwhile_is_made_again(
    folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = [writer.told("run")]
    whole, checkpoints = glances._copy, []

    def beside_a_checkpoint(path: Path, to: Path) -> None:
        whole(path, to)
        if to.name.endswith("wal") and len(checkpoints) < 2:
            begun.append(writer.told("run"))
            checkpoints.append(writer.told("checkpoint"))

    monkeypatch.setattr(glances, "_copy", beside_a_checkpoint)
    assert runs_seen(folder) == begun
    assert len(begun) == 3
    monkeypatch.setattr(glances, "_stamp", lambda _: object())
    with pytest.raises(StoreBusy, match=str(writer.process.pid)), glance(folder):
        pass


def test_a_change_that_lasts_longer_than_a_copy_is_waited_for(
    folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = [writer.told("run")]
    stamp, over = glances._stamp, time.monotonic() + 0.5
    monkeypatch.setattr(glances, "_stamp", lambda at: stamp(at) if time.monotonic() > over else object())
    assert runs_seen(folder) == begun
