"""A store's database made anew: from a damaged one, its backup, and an earlier pollex's (`earlier.tar.gz`)."""

import hashlib
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from pollex.errors import StoreDamaged, WrongUse
from pollex.store.ledger import StoreLedger
from pollex.store.repair import check, rebuild
from pollex.store.resume import answers_of, conversations_of, runs, step
from pollex.store.store import Store
from pollex.store.tables import LabelRow
from pollex.store.traces import run_tree

EARLIER = Path(__file__).with_name("earlier.tar.gz")
"""A store of schema 9: killed when a reply stood in its file and not yet in the database."""
LINES = ("replies.jsonl", "labels.jsonl", "facts.jsonl")


@pytest.fixture
def earlier(folder: Path) -> Path:
    """An earlier pollex's store."""
    with tarfile.open(EARLIER) as packed:
        packed.extractall(folder, filter="data")
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


async def filled(folder: Path, calls: int) -> None:
    """Make a store whose last run ended, and that has one reply and one label since."""
    with Store.open(folder) as store:
        ledger, run = StoreLedger(store), store.begin("score", arguments={}, fingerprint={}, versions={})
        for number in range(calls):
            await ledger.record(f"k{number}", 1, {}, f"answer to {number} " + "x" * 500)
        store.put([LabelRow("ann", "h", "c", run.id, "q", '"yes"')])
        store.finish(run.id, "done")


async def replies(folder: Path, keys: list[str]) -> list[str | None]:
    with Store.open(folder) as store:
        found = [await StoreLedger(store).lookup(key) for key in keys]
    return [None if call is None else call.raw for call in found]


async def test_a_store_of_an_earlier_pollex_is_brought_over_once_and_its_files_are_kept(earlier: Path) -> None:
    before = digests(earlier)
    with pytest.raises(WrongUse, match="`pollex doctor --rebuild` brings it over once, and keeps the files"):
        Store.open(earlier)
    told = rebuild(earlier)
    assert told == [
        "store.sqlite is kept as store.sqlite.earlier.1",
        "replies.jsonl is kept as replies.jsonl.earlier.1",
        "labels.jsonl is kept as labels.jsonl.earlier.1",
        "facts.jsonl is kept as facts.jsonl.earlier.1",
        "the new database has 5 paid answers, 1 labels and 1 runs",
    ]
    after = digests(earlier)
    assert [after[f"{name}.earlier.1"] for name in LINES] == [before[name] for name in LINES]
    with closing(sqlite3.connect(earlier / "store.sqlite.earlier.1")) as kept:
        assert kept.execute("SELECT count(*) FROM calls WHERE reply IS NOT NULL").fetchone() == (4,)
    keys = [*(f"key{number}" for number in range(4)), "late", "sent"]
    assert await replies(earlier, keys) == [*(f"answer to {n}" for n in range(4)), "written before the kill", None]
    with Store.open(earlier) as store:
        check(store)
        (run,) = runs(store)
        assert (run.status, run.roles, run.result) == ("done", ("m",), {"scored": 4})
        assert step(store, run.id, "select") == {"kept": ["r1", "r2"]}
        assert store.rows("SELECT annotator, value FROM labels") == [{"annotator": "ann", "value": '"Agree"'}]
        assert store.rows("SELECT * FROM batched") == [{"digest": "d", "key": "sent", "attempt": 1}]
        assert len(run_tree(store, run.id)) > 0
        assert len(answers_of(store, run.id)) == len(list(conversations_of(store, run.id))) == 4


async def test_an_earlier_database_that_can_not_be_read_is_made_of_the_files_beside_it(earlier: Path) -> None:
    (earlier / "store.sqlite-wal").unlink()
    (earlier / "store.sqlite").write_bytes(b"garbage" * 2000)
    assert "the new database has 5 paid answers, 1 labels and 1 runs" in rebuild(earlier)
    with Store.open(earlier) as store:
        (run,) = runs(store)
        assert step(store, run.id, "select") == {"kept": ["r1", "r2"]}


async def test_a_reply_that_was_changed_comes_from_the_backup(folder: Path) -> None:
    await filled(folder, 3)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("UPDATE calls SET reply = replace(reply, 'to 1', 'to 7')")
        connection.execute("UPDATE labels SET value = '\"no\"'")
        connection.commit()
    with Store.open(folder, read_only=True) as store, pytest.raises(StoreDamaged, match="calls were changed"):
        check(store)
    assert not [line for line in rebuild(folder) if "lost" in line]
    assert [(said or "")[:11] for said in await replies(folder, ["k0", "k1", "k2"])] == [
        f"answer to {n}" for n in range(3)
    ]
    with Store.open(folder) as store:
        assert store.value("SELECT value FROM labels") == '"yes"'


async def test_what_is_neither_readable_nor_in_the_backup_is_said_to_be_lost_and_nothing_else_is(folder: Path) -> None:
    await filled(folder, 40)
    with Store.open(folder) as store:
        for number in range(40, 80):
            await StoreLedger(store).record(f"k{number}", 1, {}, f"answer to {number} " + "x" * 500)
        (folder / "backup.sqlite").rename(folder / "kept")
    (folder / "kept").replace(folder / "backup.sqlite")
    content = bytearray((folder / "store.sqlite").read_bytes())
    place = content.index(b"answer to 60") // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    (folder / "store.sqlite").write_bytes(content)
    (lost,) = [line for line in rebuild(folder) if "lost" in line]
    found = await replies(folder, [f"k{number}" for number in range(80)])
    missing = [number for number, said in enumerate(found) if said is None]
    assert 60 in missing
    assert 1 <= len(missing) <= 15
    assert min(missing) >= 40
    assert lost.startswith(f"calls: {len(missing)} were lost at most")


async def test_a_database_that_is_garbage_is_replaced_by_its_backup_and_is_kept(folder: Path) -> None:
    await filled(folder, 3)
    (folder / "store.sqlite").write_bytes(b"garbage" * 3000)
    told = rebuild(folder)
    assert told[:2] == [
        "store.sqlite is kept as store.sqlite.damaged.1",
        "the new database has 3 paid answers, 1 labels and 1 runs",
    ]
    assert "calls: what the end of the file had is lost, but for the backup of the last run" in told
    assert (folder / "store.sqlite.damaged.1").read_bytes() == b"garbage" * 3000


async def test_a_rebuild_that_was_killed_before_it_gave_the_new_database_its_name_is_ended_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(folder, 3)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pollex.store.repair._set_aside", killed)
        with pytest.raises(KeyboardInterrupt):
            rebuild(folder)
    assert (folder / "store.sqlite").exists()
    rebuild(folder)
    assert not (folder / "store.sqlite.new").exists()
    assert await replies(folder, ["k2", "k3"]) == [f"answer to 2 {'x' * 500}", None]
