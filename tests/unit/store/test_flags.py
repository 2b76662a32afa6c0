"""Flags of conversations."""

from pathlib import Path

from pollex.conversations.conversation import Conversation, Turn
from pollex.store.resume import conversations_of
from pollex.store.rows import conversation_rows
from pollex.store.store import Store


def conversation(name: str, *flags: str) -> Conversation:
    return Conversation.model_validate({"id": name, "turns": (Turn(role="user", content=name),), "flags": flags})


def test_flags_come_back(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin("score", fingerprint={}, versions={}, arguments={}).id
        store.put(conversation_rows(run, [conversation("plain"), conversation("odd", "bidi", "too_large")]))
        store.finish(run, "done")
        assert {one.id: one.flags for one in conversations_of(store, run)} == {
            "plain": (),
            "odd": ("bidi", "too_large"),
        }
        odd = next(conversations_of(store, run, ids=["odd"]))
        assert odd.not_scorable.startswith("too large")
