"""Processes that are killed at the worst moments, resumed, and counted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pollex.errors import StoreBusy
from pollex.store.ledger import StoreLedger
from pollex.store.store import Store

PLANNED = 500

# Calls go to nobody: what a provider would have received is a line in `sent`, written the moment a call goes out.
WORK = """
import random
concurrency, seconds = int(sys.argv[2]), float(sys.argv[3])
sent = os.open(folder.parent / "sent", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

async def call(ledger, door, key):
    async with door:
        if await ledger.lookup(key) is None:
            await ledger.intend(key, 1, {})
            os.write(sent, key.encode() + b"\\n")
            await asyncio.sleep(random.uniform(0, 0.02))
            await ledger.record(key, 1, {}, "answer to " + key)

async def work():
    with Store.open(folder) as store:
        door = asyncio.Semaphore(concurrency)
        ledger = StoreLedger(store)
        await asyncio.gather(*(call(ledger, door, f"key{n}") for n in range(500)))

if seconds:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
asyncio.run(work())
"""


@pytest.mark.parametrize("concurrency", [16, 64])
def test_a_run_killed_again_and_again_repeats_at_most_what_was_in_flight(folder: Path, child, concurrency: int) -> None:
    kills = 0
    for seconds in (0.3, 0.35, 0.4, 0):
        kills += child(WORK, str(concurrency), str(seconds)).returncode != 0
    sent = (folder.parent / "sent").read_text().split()
    assert len(set(sent)) == PLANNED
    assert len(sent) <= PLANNED + kills * concurrency
    assert child(WORK, str(concurrency), "0").returncode == 0
    assert (folder.parent / "sent").read_text().split() == sent  # a finished run sends nothing again
    with Store.open(folder) as store:
        assert store.value("SELECT count(DISTINCT key) FROM ledger WHERE kind = 'result'") == PLANNED
        assert len(store.calls) == PLANNED
        assert len(store.calls.unresolved) == 0


def test_a_kill_inside_the_append_costs_the_half_line_only(folder: Path, child) -> None:
    ended = child("""
import pollex.store.journal as journal
store = Store.open(folder)
ledger = StoreLedger(store)
asyncio.run(ledger.record("a", 1, {}, "paid"))

def half(file, content):
    os.write(file, content[: len(content) // 2])
    die()

journal.write_all = half
asyncio.run(ledger.record("b", 1, {}, "lost"))
""")
    assert ended.returncode == -signal.SIGKILL
    with Store.open(folder) as store:
        (notice,) = store.notices
        assert "unfinished line" in notice
        assert (store.calls.get("a") is not None, store.calls.get("b")) == (True, None)
    with Store.open(folder) as store:
        assert store.notices == []


async def test_a_kill_between_journal_and_database_loses_nothing(folder: Path, child) -> None:
    child("""
from pollex.store.database import Database
store = Store.open(folder)
Database.insert = lambda *_: die()
asyncio.run(StoreLedger(store).record("a", 1, {}, "paid"))
store.begin("learn", arguments={}, fingerprint={}, versions={})
""")
    with Store.open(folder) as store:
        stored = await StoreLedger(store).lookup("a")
        assert stored is not None
        assert stored.raw == "paid"
        assert store.value("SELECT count(*) FROM ledger") == 1
        assert store.notices == []


def test_a_kill_around_a_checkpoint_loses_nothing(folder: Path, child) -> None:
    for delay in (0, 0.002):
        ended = child(
            """
import threading, time
from pollex.store.tables import ScoreRow
store = Store.open(folder)
store.put(ScoreRow(sys.argv[2], str(n) * 200, 1.0, None, None, None) for n in range(20_000))
store.flush()
threading.Thread(target=lambda: store._database.execute("CHECKPOINT")).start()
time.sleep(float(sys.argv[2]))
die()
""",
            str(delay),
        )
        assert ended.returncode == -signal.SIGKILL
        with Store.open(folder) as store:
            assert store.value("SELECT count(*) FROM scores WHERE run = ?", [str(delay)]) == 20_000
            assert store.notices == []


def test_what_was_acknowledged_before_a_kill_is_there_and_in_order(folder: Path, child) -> None:
    ended = child("""
from pollex.store.tables import ScoreRow
async def one(store, n):
    await store.write([ScoreRow("r", str(n), None, None, None, None)])
    print(n, flush=True)
    if n == 150:
        die()
async def work():
    store = Store.open(folder)
    await asyncio.gather(*(one(store, n) for n in range(300)))
asyncio.run(work())
""")
    acknowledged = set(ended.stdout.split())
    assert "150" in acknowledged
    with Store.open(folder) as store:
        kept = [row["conversation"] for row in store.rows("SELECT conversation FROM scores ORDER BY rowid")]
    assert acknowledged <= set(kept)
    assert kept == sorted(kept, key=int)


def test_another_process_is_refused_with_the_writers_number_until_that_is_killed(folder: Path, child) -> None:
    code = "import sys\nfrom pathlib import Path\nfrom pollex.store.store import Store\n"
    code += "store = Store.open(Path(sys.argv[1]))\nprint('open', flush=True)\nsys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        for read_only in (False, True):
            with pytest.raises(StoreBusy, match=f"process {holder.pid}"):
                Store.open(folder, read_only=read_only)
    finally:
        holder.kill()
        holder.communicate()
    Store.open(folder).close()
