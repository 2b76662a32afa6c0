"""Ends of processes: kills, full disks, no rights, two at once, and what is found afterwards."""

import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from pollex.store.ledger import StoreCallLedger
from pollex.store.resume import list_stored_runs
from pollex.store.runs import is_run_worked_on
from pollex.store.store import Store

PLANNED = 200

# Calls go to nobody: what a provider would have received is a line in `sent`, written the moment a
# call goes out.
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
        ledger = StoreCallLedger(store)
        await asyncio.gather(*(call(ledger, door, f"key{n}") for n in range(200)))

if seconds:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
asyncio.run(work())
"""


def test_a_run_killed_again_and_again_repeats_at_most_what_was_in_flight(
    folder: Path, child
) -> None:
    kills = 0
    for seconds in (0.15, 0.3, 0):
        kills += child(WORK, "16", str(seconds)).returncode != 0
    sent = (folder.parent / "sent").read_text().split()
    assert len(set(sent)) == PLANNED
    assert len(sent) <= PLANNED + kills * 16
    assert child(WORK, "16", "0").returncode == 0
    # a finished run sends nothing again
    assert (folder.parent / "sent").read_text().split() == sent
    with Store.open(folder) as store:
        assert store.paid == PLANNED
        assert store.value("SELECT count(*) FROM calls WHERE reply IS NULL") == 0


MOMENTS = ["before", pytest.param("after", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_kill_around_the_commit_of_a_reply_costs_none_that_was_committed(
    folder: Path, child, moment: str
) -> None:
    ended = child(
        """
store = Store.open(folder)
ledger, writer = StoreCallLedger(store), store._writes
asyncio.run(ledger.record("a", 1, {}, "paid"))
apply = writer._apply
writer._apply = lambda changes: (sys.argv[2] == "before" and die(), apply(changes), die())
asyncio.run(ledger.record("b", 1, {}, "paid, too"))
""",
        moment,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with Store.open(folder) as store:
        kept = [await StoreCallLedger(store).lookup(key) is not None for key in "ab"]
    assert kept == [True, moment == "after"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_a_backup_is_made_leaves_the_last_one_whole(
    folder: Path, child, moment: str
) -> None:
    ended = child(
        """
from pollex.store.database import Database
store = Store.open(folder)
asyncio.run(StoreCallLedger(store).record("a", 1, {}, "paid"))
store.backup()
asyncio.run(StoreCallLedger(store).record("b", 1, {}, "paid, too"))
replace = Path.replace
Path.replace = lambda *given: (sys.argv[2] == "before" and die(), replace(*given), die())
store.backup()
""",
        moment,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with closing(sqlite3.connect(folder / "backup.sqlite")) as backup:
        assert backup.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert backup.execute("SELECT count(*) FROM calls").fetchone() == (
            1 if moment == "before" else 2,
        )


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_parts_are_put_together_changes_no_row(
    folder: Path, child, moment: str
) -> None:
    ended = child(
        """
from pollex.store.columns import Columns
from pollex.store.tables import ScoreRow
store = Store.open(folder)
for number in range(5):
    store.put([ScoreRow(sys.argv[2], str(number), None, None, None, None)])
    store.flush()
copy = Columns._copy
Columns._copy = lambda *given: (sys.argv[2] == "before" and die(), copy(*given), die())
store.finish(sys.argv[2], "done")
""",
        moment,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with Store.open(folder) as store:
        scores = store.ask(moment, "SELECT conversation FROM scores ORDER BY seq")
    assert [row["conversation"] for row in scores] == list("01234")


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
        kept = [
            row["conversation"]
            for row in store.ask("r", "SELECT conversation FROM scores ORDER BY seq")
        ]
    assert acknowledged <= set(kept)
    assert kept == sorted(kept, key=int)


def test_a_program_that_forgets_to_close_loses_nothing(folder: Path, child) -> None:
    ended = child(
        "store = Store.open(folder); store.begin('learn', arguments={}, fingerprint={}, versions={})\n"
        "from pollex.store.tables import ScoreRow\nstore.put([ScoreRow('r', 'c', 1.0, None, None, None)])"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    with Store.open(folder) as store:
        assert store.ask("r", "SELECT netsat FROM scores") == [{"netsat": 1.0}]


@pytest.mark.parametrize("made", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_a_folder_that_can_not_be_written_is_refused_before_any_work(child, made: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        kept = Path(name) / "kept"
        if made:
            Store.open(kept).close()
            for file in (kept, *kept.iterdir()):
                file.chmod(0o555)
        Path(name).chmod(0o555)
        ended = child(
            "folder = Path(sys.argv[2])\n"
            "if os.getuid() == 0:\n    os.setuid(65534)\n"  # root may write anywhere
            "try:\n    Store.open(folder)\nexcept WrongUse as refused:\n    print(refused)",
            str(kept),
        )
        assert "the store can't be written" in ended.stdout, ended.stderr
        Path(name).chmod(0o755)


# Begins a run for each line that comes in, and says its id once it is kept.
WRITER = """
import sys
from pathlib import Path
from pollex.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    print("open", flush=True)
    for line in sys.stdin:
        print(store.begin("learn", arguments={}, fingerprint={}, versions={}).id, flush=True)
"""


def test_readers_and_writers_meet_a_running_run_and_stop_nobody(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        begun = []
        with Store.open(folder, read_only=True) as reader, Store.open(folder) as writer:
            for number in range(3):
                process.stdin.write("begin\n")
                process.stdin.flush()
                begun.append(process.stdout.readline().strip())
                writer.finish(
                    writer.begin("score", arguments={}, fingerprint={}, versions={}).id, "done"
                )
                assert [run.number for run in list_stored_runs(reader)] == list(
                    range(1, 2 * number + 3)
                )
            assert is_run_worked_on(folder / "runs", begun[0])
            process.kill()
            process.wait()
            assert not is_run_worked_on(folder / "runs", begun[0])
            writer.take_up(begun[0])


# A limit on the size of files fails a write as a full disk does, needs no privileges, and spares
# the machine.
FULL = """
limit, what = int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pollex.store.tables import ScoreRow

async def work(store):
    for n in range(4000):
        if what == "replies":
            await StoreCallLedger(store).record(f"key{n}", 1, {}, "x" * 2000)
        else:
            await store.write([ScoreRow(f"r{n}", os.urandom(40_000 * n).hex(), None, None, None, None)])
        print(n, flush=True)

store = Store.open(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    asyncio.run(work(store))
except StoreFull as full:
    print(full, file=sys.stderr)
    try:
        store.put([ScoreRow("r", "c", None, None, None, None)])
    except StoreFull:
        print("takes no more", file=sys.stderr)
    try:
        store.close()
    except StoreFull:
        pass
"""


@pytest.mark.parametrize(("what", "limit"), [("replies", 2 << 20), ("columns", 1 << 19)])
def test_a_full_disk_stops_the_store_in_words_and_loses_nothing(
    folder: Path, child, what: str, limit: int
) -> None:
    Store.open(folder).close()
    ended = child(FULL, str(limit), what)
    acknowledged = ended.stdout.split()
    assert len(acknowledged) > 2
    assert f"disk full at {folder}/" in ended.stderr, ended.stderr
    assert ended.stderr.rstrip().endswith("takes no more")
    with Store.open(folder) as store:
        if what == "replies":
            assert (
                f", {len(acknowledged)} answers safe → make room, then resume the run"
                in ended.stderr
            )
            # what the file had room for is kept, told or not
            assert 0 <= store.paid - len(acknowledged) <= 1
        else:
            assert all(store.ask(f"r{n}", "SELECT * FROM scores") for n in acknowledged)
        store.begin("learn", arguments={}, fingerprint={}, versions={})


def test_no_room_to_make_a_store_is_a_clear_error_and_leaves_nothing_broken(
    folder: Path, child
) -> None:
    ended = child(
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000,) * 2)\n"
        "try:\n    Store.open(folder)\nexcept StoreFull as full:\n    print(full)",
    )
    assert "disk full at" in ended.stdout, ended.stderr
    Store.open(folder).close()
