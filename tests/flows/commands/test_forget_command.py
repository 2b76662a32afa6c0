"""`pollex forget`: calls that quote a conversation, and what counts as a quote."""

import json
from pathlib import Path

from small_runs import Pollex

from pollex.conversations.conversation import Conversation, Feedback, Turn
from pollex.store.fragments import ConversationFragments
from pollex.store.ledger import StoreCallLedger
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store

SECRET = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."


def test_what_everybody_says_is_no_trace_of_anybody() -> None:
    own = ["Is there anything else I can help you with? Ottokar keeps alpacas.", "Grüße, Lotte"]
    traces = ConversationFragments(own, ["Is there anything else I can help you with? Bye."])
    assert not traces.within("So: is there anything else I can help you with?")
    assert traces.within("…help you with? Ottokar keeps…")
    assert traces.within("grüße  lotte!")


async def test_calls_about_others_stay_unless_they_quote(tmp_path: Path, pollex: Pollex) -> None:
    def talk(id_: str, said: str) -> Conversation:
        turns = (Turn(role="user", content=said), Turn(role="assistant", content="I see."))
        return Conversation(
            id=id_, turns=turns, feedback=(Feedback(comment=f"Not a word of Xaver's cello, {id_}"),)
        )

    with Store.open(tmp_path / ".pollex") as store:
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
        await store.write(
            make_conversation_rows(
                run.id, [talk("anna-1", SECRET), talk("b", "Where is my parcel now?")]
            )
        )
        ledger = StoreCallLedger(store)
        for key, item, raw in (
            ("k1", "anna-1", "yes"),
            ("k2", "batch", f"They say: {SECRET}"),
            ("k3", "b", "no"),
        ):
            about = {"stage": "s", "item": item, "request": json.dumps({"content": raw})}
            await ledger.intend(key, 1, about)
            await ledger.record(
                key, 1, {"kind": "completed", "text": raw}, json.dumps({"said": raw})
            )
        store.finish(run.id, "done")
    tried = pollex("forget", "--conversation", "anna-1", "--dry-run")
    assert tried.code == 0
    assert "Would forget 1 conversations" in tried.out
    assert "1 conversations)" in tried.out
    assert pollex("forget", "--conversation", "anna-1").code == 0
    with Store.open(tmp_path / ".pollex") as store:
        assert store.rows("SELECT c.key FROM calls AS c JOIN requests USING (key)") == [
            {"key": "k3"}
        ]
    files = [path for path in (tmp_path / ".pollex").rglob("*") if path.is_file()]
    assert not any(
        gone in path.read_bytes() for path in files for gone in (b"alpacas", b"cello, anna-1")
    )
    assert b"k3" in (tmp_path / ".pollex" / "backup.sqlite").read_bytes()
    for options in ((), ("--dry-run",)):
        assert pollex("forget", "--conversation", "nobody", *options).code == 2
