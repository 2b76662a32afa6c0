"""What callers of the store rely on, method by method, however it keeps things."""

import sqlite3
from pathlib import Path

import pytest

from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.store.columns import parts_of
from pollex.store.resume import conversations_of, facts_of, runs
from pollex.store.rows import conversation_rows
from pollex.store.store import Store
from pollex.store.tables import FactRow, LabelRow, ScoreRow, SpanRow


def score(conversation: str, run: str = "r") -> ScoreRow:
    return ScoreRow(run, conversation, 1.0, "positive", True, None)


def span(item: str) -> SpanRow:
    return SpanRow("r", f"s-{item}", None, "judge", "role", item, (), (), "t", 1.0, "")


def begin(store: Store) -> str:
    return store.begin("score", arguments={}, fingerprint={}, versions={}).id


async def test_what_write_returns_from_is_read_by_other_processes_in_the_order_of_writing(store: Store) -> None:
    store.put([FactRow("r", "step", "a", "1"), score("c1"), span("c1")])
    await store.write([FactRow("r", "step", "a", "2"), score("c2"), span("c2")])
    with Store.open(store.folder, read_only=True) as reader:
        assert facts_of(reader, "r", "step") == {"a": 2}
        assert reader.ask("r", "SELECT conversation FROM scores ORDER BY seq") == [
            {"conversation": "c1"},
            {"conversation": "c2"},
        ]
        assert list(reader.each("SELECT item FROM spans ORDER BY rowid")) == [("c1",), ("c2",)]
        assert reader.value("SELECT count(*) FROM spans") == 2
        assert reader.value("SELECT item FROM spans WHERE item = ?", ["none"]) is None


def test_a_finished_run_has_one_part_of_each_kind_and_one_last_pulse(store: Store) -> None:
    run = begin(store)
    for number in range(40):
        store.put([score(str(number), run)])
        store.flush()
    store.finish(run, "done")
    assert len(parts_of(store.folder / "runs" / run / "scores")) == 1
    found = store.ask(run, "SELECT conversation FROM scores ORDER BY seq")
    assert [row["conversation"] for row in found] == [str(number) for number in range(40)]
    for table in ("conversations", "texts", "answers", "scores"):
        assert store.ask("none", f"SELECT * FROM {table}") == []
    for done in (1, 2):
        store.pulse("r", {"done": done})
    store.flush()
    assert store.rows("SELECT run, payload FROM progress") == [{"run": "r", "payload": '{"done":2}'}]


def test_work_in_a_transaction_happens_whole_or_not_at_all(store: Store) -> None:
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("DELETE FROM labels")
        raise ValueError("no")

    store.put([LabelRow("ann", "h", "c", "r", "q", '"yes"')])
    with pytest.raises(ValueError, match="no"):
        store.transact(work)
    assert store.value("SELECT count(*) FROM labels") == 1
    assert store.transact(lambda connection: connection.execute("DELETE FROM labels").rowcount) == 1


def test_without_texts_nothing_that_was_said_is_kept(store: Store, conversation: Conversation) -> None:
    store.texts = False
    store.put(conversation_rows("r", [conversation]))
    store.flush()
    (found,) = conversations_of(store, "r")
    assert (found.id, found.turns) == (conversation.id, ())
    assert store.ask("r", "SELECT opening FROM conversations") == [{"opening": ""}]


def test_a_write_that_failed_is_told_and_the_store_takes_no_more(folder: Path) -> None:
    store = Store.open(folder)
    store.transact(lambda connection: connection.execute("DROP TABLE spans"))
    store.put([span("c1")])
    with pytest.raises(PollexError, match="damaged"):
        store.flush()
    with pytest.raises(PollexError, match="damaged"):
        store.put([score("c2")])
    with pytest.raises(PollexError, match="damaged"):
        store.close()
    store.close()


async def test_where_it_goes_on_a_failed_write_costs_its_writer_alone(folder: Path) -> None:
    with Store.open(folder, goes_on=True) as store:
        store.transact(lambda connection: connection.execute("DROP TABLE spans"))
        with pytest.raises(PollexError, match="damaged"):
            await store.write([span("c1")])
        await store.write([score("c2")])
        assert len(store.ask("r", "SELECT * FROM scores")) == 1


def test_a_closed_store_takes_nothing_and_lets_go_of_its_runs(folder: Path) -> None:
    store = Store.open(folder)
    run = begin(store)
    store.close()
    with pytest.raises(RuntimeError, match="closed"):
        store.put([score("c")])
    with Store.open(folder) as other:
        other.take_up(run)
        assert [one.id for one in runs(other)] == [run]
