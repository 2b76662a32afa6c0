"""Flags of conversations, also in runs that an older version began."""

from __future__ import annotations

from pathlib import Path

import duckdb

from pollex.conversations.conversation import Conversation, Turn
from pollex.store.resume import conversations_of
from pollex.store.rows import conversation_rows
from pollex.store.store import Store


def conversation(name: str, *flags: str) -> Conversation:
    return Conversation.model_validate({"id": name, "turns": (Turn(role="user", content=name),), "flags": flags})


def without_flags(store: Store) -> None:
    """Make the conversations' parts what an older version wrote."""
    for part in store.folder.glob("runs/*/conversations-*.parquet"):
        older = part.with_name("older.parquet")
        duckdb.read_parquet(str(part)).order("seq").project("* EXCLUDE (flags)").write_parquet(str(older))
        older.replace(part)


def test_flags_come_back_and_an_older_runs_have_none_before_and_after_it_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin("score", fingerprint={}, versions={}, arguments={}).id
        store.put(conversation_rows(run, [conversation("old", "nul")]))
        store.flush()
        without_flags(store)
        assert [one.flags for one in conversations_of(store, run)] == [()]
        store.put(conversation_rows(run, [conversation("new", "bidi", "too_large")]))
        store.flush()
        told = {one.id: one.flags for one in conversations_of(store, run)}
        assert told == {"old": (), "new": ("bidi", "too_large")}
        store.finish(run, "done")
        assert {one.id: one.flags for one in conversations_of(store, run)} == told
        new = next(conversations_of(store, run, ids=["new"]))
        assert new.not_scorable.startswith("too large")
