"""Stores that were hurt: whatever is damaged or lost is had again from what is left, and what was hurt is kept."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pollex.errors import StoreDamaged
from pollex.store.journal import corrupt_name
from pollex.store.ledger import StoreLedger
from pollex.store.resume import runs, step
from pollex.store.store import Store

CALLS = 40

FILL = f"""
async def fill(store):
    ledger = StoreLedger(store)
    run = store.begin("learn", arguments={{}}, fingerprint={{"data": "d"}}, versions={{}})
    for number in range({CALLS}):
        await ledger.intend(f"key{{number}}", 1, {{"stage": "judge"}})
        await ledger.record(f"key{{number}}", 1, {{"kind": "completed"}}, f"raw {{number}} \\ud800")
        if number == 20:
            await store.settle()
            store._database.execute("CHECKPOINT")
    await store.write_step(run.id, "summarise", [1, 2])
"""
KILLED_AFTER_WORK = FILL + "asyncio.run(fill(Store.open(folder)))\ndie()"


@pytest.fixture
def killed(folder: Path, child: Callable[..., object]) -> Path:
    """A store of a process that was killed: half of it in the file, half in the write-ahead log."""
    child(KILLED_AFTER_WORK)
    assert (folder / "store.duckdb.wal").stat().st_size > 0
    return folder


def held(store: Store) -> list[str]:
    """The raw answers that the ledger has, in the order of the calls."""

    async def answers() -> list[str]:
        found = [await StoreLedger(store).lookup(f"key{number}") for number in range(CALLS)]
        return [call.raw for call in found if call]

    return asyncio.run(answers())


def whole(store: Store) -> bool:
    """Whether nothing that was acknowledged is missing, in the journal or in the database."""
    return (
        held(store) == [f"raw {number} \ud800" for number in range(CALLS)]
        and store.value("SELECT count(DISTINCT key) FROM ledger WHERE kind = 'result' AND key LIKE 'key%'") == CALLS
        and len(runs(store)) == 1
        and step(store, runs(store)[0].id, "summarise") == [1, 2]
    )


def test_a_killed_store_opens_whole_without_a_word(killed: Path) -> None:
    with Store.open(killed) as store:
        assert whole(store)
        assert store.notices == []
    with Store.open(killed) as store:
        assert whole(store)
        assert store.value("SELECT count(*) FROM ledger") == 2 * CALLS


def test_every_flipped_byte_of_the_log_is_mended(killed: Path, tmp_path: Path) -> None:
    size = (killed / "store.duckdb.wal").stat().st_size
    offsets = sorted({*range(0, 24, 3), *range(24, size, size // 8), size - 1})  # 18 is the one that goes unnoticed
    for offset in offsets:
        copy = tmp_path / f"at{offset}"
        shutil.copytree(killed, copy)
        flip(copy / "store.duckdb.wal", offset)
        with Store.open(copy) as store:
            assert whole(store), offset
        shutil.rmtree(copy)


def test_a_lost_or_cut_log_is_topped_up_from_the_journal(killed: Path, tmp_path: Path) -> None:
    log = (killed / "store.duckdb.wal").read_bytes()
    for kept in (0, 10, len(log) // 3, len(log) - 1, None):
        copy = tmp_path / f"cut{kept}"
        shutil.copytree(killed, copy)
        if kept is None:
            (copy / "store.duckdb.wal").unlink()
        else:
            (copy / "store.duckdb.wal").write_bytes(log[:kept])
        with Store.open(copy) as store:
            assert whole(store), kept


def test_a_damaged_log_is_kept_and_said(killed: Path) -> None:
    log = (killed / "store.duckdb.wal").read_bytes()
    hurt = flip(killed / "store.duckdb.wal", len(log) // 2)
    with Store.open(killed) as store:
        assert any("store.duckdb.wal was damaged" in notice for notice in store.notices)
    assert (killed / "store.duckdb.wal.corrupt.1").read_bytes() == hurt


def test_flipped_bytes_of_the_file_are_mended(killed: Path, tmp_path: Path) -> None:
    Store.open(killed).close()
    size = (killed / "store.duckdb").stat().st_size
    rng = random.Random(5)
    rebuilt = 0
    for offset in [0, 8, 12, 4096, 8192, 12288, *(rng.randrange(size) for _ in range(14))]:
        copy = tmp_path / f"at{offset}"
        shutil.copytree(killed, copy)
        hurt = flip(copy / "store.duckdb", offset)
        with Store.open(copy) as store:
            assert whole(store), offset
        if kept := list(copy.glob("*.corrupt.1")):
            rebuilt += 1
            assert kept[0].read_bytes() == hurt
        shutil.rmtree(copy)
    assert rebuilt >= 3  # a flip in a free block hurts nobody


@pytest.mark.parametrize("content", [b"", b"\x00" * 5000, b"garbage" * 4000, "half"])
def test_a_file_of_rubbish_is_kept_and_rebuilt(killed: Path, content: bytes | str) -> None:
    path = killed / "store.duckdb"
    hurt = path.read_bytes()[:9000] if content == "half" else content
    path.write_bytes(hurt)
    with Store.open(killed) as store:
        assert whole(store)
        assert any("store.duckdb was damaged" in notice and "corrupt.1" in notice for notice in store.notices)
    assert (killed / "store.duckdb.corrupt.1").read_bytes() == hurt


def test_a_second_damage_does_not_overwrite_what_the_first_left(killed: Path) -> None:
    for content in (b"one", b"two"):
        (killed / "store.duckdb").write_bytes(content)
        Store.open(killed).close()
    assert [(killed / f"store.duckdb.corrupt.{number}").read_bytes() for number in (1, 2)] == [b"one", b"two"]
    assert corrupt_name(killed / "store.duckdb").name == "store.duckdb.corrupt.3"


def test_a_missing_file_is_rebuilt_and_said(killed: Path) -> None:
    (killed / "store.duckdb").unlink()
    (killed / "store.duckdb.wal").unlink()
    with Store.open(killed) as store:
        assert whole(store)
        assert store.notices == [f"{killed / 'store.duckdb'} was missing: rebuilt from the journal"]


def test_a_log_without_its_file_is_kept_and_not_taken_for_that_of_the_new_one(killed: Path) -> None:
    log = (killed / "store.duckdb.wal").read_bytes()
    (killed / "store.duckdb").unlink()
    with Store.open(killed) as store:
        assert whole(store)
    assert (killed / "store.duckdb.wal.corrupt.1").read_bytes() == log


def test_rows_that_vanished_without_a_trace_are_missed(killed: Path) -> None:
    Store.open(killed).close()
    with duckdb.connect(str(killed / "store.duckdb")) as connection:
        connection.execute("DELETE FROM ledger WHERE key = 'key7'")
    with Store.open(killed) as store:
        assert whole(store)
        assert "it holds less than it says" in store.notices[0]


def test_a_lost_journal_is_written_anew_from_the_database(killed: Path) -> None:
    Store.open(killed).close()
    (killed / "journal.jsonl").unlink()
    with Store.open(killed) as store:
        assert whole(store)
        assert "the journal was not what the store was filled from" in store.notices[0]
    with Store.open(killed) as store:
        assert whole(store)
        assert store.notices == []


def test_damaged_lines_of_the_journal_are_had_again_from_the_database(killed: Path) -> None:
    Store.open(killed).close()
    hurt = flip(killed / "journal.jsonl", 2000)
    with Store.open(killed) as store:
        assert whole(store)
        (notice,) = store.notices
        assert notice.startswith("the journal had 1 damaged lines: written anew with 82 lines")
    assert (killed / "journal.jsonl.corrupt.1").read_bytes() == hurt


def test_a_journal_that_knows_more_than_the_database_loses_nothing_when_it_is_damaged(
    killed: Path, child: Callable[..., object]
) -> None:
    Store.open(killed).close()
    child(
        "from pollex.store.database import Database\nstore = Store.open(folder)\n"
        "Database.insert = lambda *_: die()\n"
        "asyncio.run(StoreLedger(store).record('more', 1, {}, 'paid'))\nimport time\ntime.sleep(5)"
    )
    flip(killed / "journal.jsonl", 2000)
    with Store.open(killed) as store:
        assert whole(store)
        more = asyncio.run(StoreLedger(store).lookup("more"))
        assert more is not None
        assert more.raw == "paid"
        assert store.value("SELECT count(*) FROM ledger WHERE key = 'more'") == 1


def test_damage_that_a_query_meets_makes_the_next_opening_read_everything(killed: Path) -> None:
    with Store.open(killed) as store:
        error = store._suspected(duckdb.Error("Corrupt database file"))
        assert isinstance(error, StoreDamaged)
    assert (killed / "store.duckdb.suspect").exists()
    with Store.open(killed) as store:
        assert whole(store)
    assert not (killed / "store.duckdb.suspect").exists()


def test_a_reader_repairs_nothing_and_says_what_would(killed: Path) -> None:
    (killed / "store.duckdb").write_bytes(b"rubbish")
    with pytest.raises(StoreDamaged, match="open it for writing once"):
        Store.open(killed, read_only=True)
    assert (killed / "store.duckdb").read_bytes() == b"rubbish"


def flip(path: Path, offset: int) -> bytes:
    """Changes one byte of a file; gives what the file now is."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)
    return bytes(content)
