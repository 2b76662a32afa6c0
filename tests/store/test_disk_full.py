"""A disk without room: no more is taken, what was acknowledged is safe, and it goes on where there is room again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollex.store.store import Store

# A limit on the size of files fails a write as a full disk does, needs no privileges, and spares the machine.
WORK = """
limit, what = int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pollex.store.tables import ScoreRow

async def work(store):
    for n in range(4000):
        if what == "journal":
            await StoreLedger(store).record(f"key{n}", 1, {}, "x" * 2000)
        else:
            await store.write([ScoreRow(str(n), os.urandom(20_000).hex(), None, None, None, None)])
        print(n, flush=True)

store = Store.open(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    asyncio.run(work(store))
except StoreFull as full:
    print(full, file=sys.stderr)
    try:
        store.begin("learn", arguments={}, fingerprint={}, versions={})
    except StoreFull:
        print("takes no more", file=sys.stderr)
    try:
        store.close()
    except StoreFull:
        pass
"""


def test_a_full_journal_stops_the_store_and_loses_no_answer(folder: Path, child) -> None:
    Store.open(folder).close()
    ended = child(WORK, str(4 << 20), "journal")
    acknowledged = len(ended.stdout.split())
    assert acknowledged > 500
    assert f"disk full at {folder}/journal.jsonl, {acknowledged} answers safe" in ended.stderr
    assert "takes no more" in ended.stderr
    with Store.open(folder) as store:
        assert len(store.calls) == acknowledged
        assert store.value("SELECT count(*) FROM ledger") == acknowledged
        store.begin("learn", arguments={}, fingerprint={}, versions={})


def test_a_full_database_stops_the_store_and_loses_nothing(folder: Path, child) -> None:
    Store.open(folder).close()
    ended = child(WORK, str(8 << 20), "database")
    acknowledged = len(ended.stdout.split())
    assert acknowledged > 50
    assert f"disk full at {folder}/store.duckdb, 0 answers safe" in ended.stderr
    assert "takes no more" in ended.stderr
    with Store.open(folder) as store:
        assert store.value("SELECT count(*) FROM scores") >= acknowledged


@pytest.mark.parametrize("limit", [64 << 10, 200 << 10])
def test_no_room_to_make_a_store_is_a_clear_error_and_leaves_nothing_broken(folder: Path, child, limit: int) -> None:
    ended = child(
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n    Store.open(folder)\nexcept StoreFull as full:\n    print(full)",
        str(limit),
    )
    assert "disk full at" in ended.stdout, ended.stderr
    Store.open(folder).close()


def test_a_checkpoint_that_finds_no_room_stops_the_database_and_loses_nothing(folder: Path, child) -> None:
    Store.open(folder).close()
    ended = child("""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pollex.store.tables import ScoreRow
store = Store.open(folder)

def put(count):
    store.put(ScoreRow(str(n), os.urandom(3000).hex(), None, None, None, None) for n in range(count))
    store.flush()

put(1500)
store._database.execute("CHECKPOINT")
room = (folder / "store.duckdb").stat().st_size + 300_000
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
put(500)
print("acknowledged", flush=True)
try:
    store.close()
except StoreFull as full:
    print(full, type(full.__cause__).__name__)
""")
    assert ended.stdout.startswith("acknowledged\ndisk full at "), ended.stderr
    with Store.open(folder) as store:
        assert store.value("SELECT count(*) FROM scores") == 2000
        assert store.notices == []
