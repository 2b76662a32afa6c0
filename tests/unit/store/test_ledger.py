"""The ledger: what was paid for is found again, and what may have been billed is known."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from pollex.errors import StoreDamaged
from pollex.gateway.calls import Ledger, StoredReply
from pollex.store.ledger import StoreCallLedger
from pollex.store.spans import Tracer
from pollex.store.store import Store


async def test_the_last_record_of_a_key_stands_word_for_word_for_every_process(
    store: Store,
) -> None:
    ledger: Ledger = StoreCallLedger(store)
    await ledger.intend("k", 1, {})
    assert await ledger.lookup("k") is None
    with Store.open(store.folder) as other:
        await StoreCallLedger(other).record("k", 1, {"kind": "error"}, "")
        await ledger.record("k", 2, {"kind": "completed", "usage": None}, 'é\ud800\x00\n"}')
        found = [await ledger.lookup("k"), await StoreCallLedger(other).lookup("k")]
    assert found == [StoredReply("k", {"kind": "completed", "usage": None}, 'é\ud800\x00\n"}')] * 2


async def test_an_intent_without_a_reply_was_possibly_billed_also_after_reopening(
    store: Store,
) -> None:
    ledger = StoreCallLedger(store)
    for attempt in (1, 2):
        await ledger.intend("k", attempt, {"stage": "judge", "item": "c1"})
    await ledger.record("k", 2, {}, "")
    store.close()
    with Store.open(store.folder) as again:
        unresolved = again.rows("SELECT key, attempt, stage, item FROM calls WHERE reply IS NULL")
    assert unresolved == [{"key": "k", "attempt": 1, "stage": "judge", "item": "c1"}]


async def test_a_reply_is_on_the_disk_when_it_is_recorded_and_an_intent_in_the_database(
    store: Store,
) -> None:
    ledger = StoreCallLedger(store)
    said = list[str]()
    assert store._writes is not None
    store._writes._database._connection.set_trace_callback(said.append)
    await ledger.intend("k", 1, {})
    assert said[0] == "PRAGMA synchronous = NORMAL"
    said.clear()
    await ledger.record("k", 1, {"kind": "completed"}, "raw")
    assert (said[0], said[-1]) == ("PRAGMA synchronous = FULL", "COMMIT")
    with closing(sqlite3.connect(store.folder / "store.sqlite")) as other:
        (kept,) = other.execute("SELECT key, attempt, outcome, reply FROM calls").fetchall()
    assert kept[:3] == ("k", 1, "completed")
    assert {"key": "k", "outcome": {"kind": "completed"}, "raw": "raw"}.items() <= json.loads(
        kept[3]
    ).items()


async def test_a_reply_that_was_changed_is_no_answer(store: Store) -> None:
    ledger = StoreCallLedger(store)
    await ledger.record("k", 1, {}, "yes")
    with store.database.transaction() as connection:
        connection.execute("UPDATE calls SET reply = replace(reply, 'yes', 'no')")
    with pytest.raises(StoreDamaged, match="was changed"):
        await ledger.lookup("k")


async def test_a_call_is_out_in_one_process_at_a_time(store: Store) -> None:
    ours = StoreCallLedger(store)
    with Store.open(store.folder) as other:
        theirs = StoreCallLedger(other)
        assert await theirs.intend("k", 1, {})
        assert await theirs.intend("k", 1, {}), "who has the lease may send again"
        assert await ours.is_out("k")
        assert not await ours.intend("k", 1, {})
        await theirs.record("k", 1, {"attempt": 1}, "paid there")
        assert not await ours.is_out("k")
        assert not await ours.intend("k", 1, {}), "its reply is there"
        assert await ours.intend("k", 2, {}), "a reply to ask again for"
        await theirs.intend("gone", 1, {})
        await theirs.intend("late", 1, {}, seconds=0)
        assert not await ours.is_out("late"), "a lease runs out"
        assert await ours.is_out("gone")
    assert not await ours.is_out("gone"), "a lease ends with its process"
    assert await ours.intend("gone", 1, {})


async def test_prompts_are_kept_once_unless_nobody_wants_them(store: Store) -> None:
    ledger = StoreCallLedger(store)
    for attempt in (1, 2):
        await ledger.intend("k", attempt, {"request": '{"messages": []}'})
    store.prompts = False
    await ledger.intend("other", 1, {"request": "{}"})
    assert store.rows("SELECT * FROM requests") == [{"key": "k", "body": '{"messages": []}'}]


async def test_many_replies_at_once_share_their_commits(store: Store) -> None:
    ledger = StoreCallLedger(store)
    batches: list[int] = []
    writer = store._writes
    assert writer is not None
    apply = writer._apply
    writer._apply = lambda changes: batches.append(len(changes)) or apply(changes)  # type: ignore[method-assign, assignment]
    await asyncio.gather(*(ledger.record(f"k{n}", 1, {}, "raw") for n in range(200)))
    assert sum(batches) == 200
    assert len(batches) < 100
    assert [call.key for n in range(200) if (call := await ledger.lookup(f"k{n}"))] == [
        f"k{n}" for n in range(200)
    ]


async def test_a_cancelled_caller_leaves_its_record_and_the_others_alone(store: Store) -> None:
    ledger = StoreCallLedger(store)
    tasks = [asyncio.create_task(ledger.record(f"k{n}", 1, {}, "raw")) for n in range(20)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [n for n, result in enumerate(results) if result is not None] == [3]
    await store.settle()
    assert store.paid == 20


async def test_a_call_is_a_span_inside_the_span_that_made_it(store: Store) -> None:
    tracer = Tracer(store, "run")
    ledger = StoreCallLedger(store, tracer)
    async with tracer.span("judge", kind="role", item="c1") as span:
        await ledger.intend("k", 1, {"stage": "judge sat", "item": "c1"})
        await asyncio.sleep(0.01)
        await ledger.record("k", 1, {}, "raw")
    await store.settle()
    call = store.rows("SELECT * FROM spans WHERE kind = 'call'")[0]
    assert (call["parent"], call["name"], call["item"], call["inputs"]) == (
        span.id,
        "judge sat",
        "c1",
        '["k"]',
    )
    assert call["ms"] >= 9
