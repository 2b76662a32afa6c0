"""`pollex forget` inside a store's own files: logs that were brought, results of commands, files of an assistant."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import Pollex

from pollex.conversations.conversation import Conversation, Turn
from pollex.services.bring import write_private
from pollex.services.readings import find_reading, keep_reading, make_reading
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store

SECRET = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."
OTHER = "Where is my parcel now?"
JSONL = "".join(
    json.dumps({"id": id_, "messages": [{"role": "user", "content": said}]}) + "\n"
    for id_, said in (("anna-1", SECRET), ("b", OTHER))
)
CSV = f"id;frage;antwort\nanna-1;{SECRET};I see.\nb;{OTHER};I see.\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store whose run has two conversations, one of them to be forgotten."""
    talks = [
        Conversation(
            id=id_,
            turns=(Turn(role="user", content=said), Turn(role="assistant", content="I see.")),
        )
        for id_, said in (("anna-1", SECRET), ("b", OTHER))
    ]
    with Store.open(tmp_path / ".pollex") as opened:
        run = opened.begin("score", arguments={}, fingerprint={}, versions={})
        opened.put(make_conversation_rows(run.id, talks))
        opened.finish(run.id, "done")
    return tmp_path / ".pollex"


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", JSONL), ("a.csv", CSV)])
def test_a_conversation_goes_out_of_a_log_that_was_brought(
    store: Path, pollex: Pollex, name: str, content: str
) -> None:
    reading = make_reading(store, name)
    write_private(reading.folder / name, content.encode())
    keep_reading(replace(reading, files=(name,), titles=(name,), conversations=2))
    tried = pollex("forget", "--conversation", "anna-1", "--dry-run")
    assert "Ottokar" in (reading.folder / name).read_text()
    assert name in tried.out
    ended = pollex("forget", "--conversation", "anna-1")
    assert ended.code == 0, ended.err
    left = (reading.folder / name).read_text()
    assert "Ottokar" not in left
    assert OTHER in left
    assert find_reading(store, reading.id).conversations is None


def test_it_goes_out_of_results_and_out_of_what_an_assistant_is_asked(
    store: Path, pollex: Pollex
) -> None:
    result = {"words": "Write the brief", "told": {"targets": [{"said": SECRET}], "n": 2}}
    for folder, name, content in (
        ("commands/ended", "0123abcd.json", json.dumps(result)),
        ("asked/0123", "todo.jsonl", json.dumps({"key": "k", "messages": [SECRET]}) + "\n"),
    ):
        (store / folder).mkdir(parents=True)
        (store / folder / name).write_text(content)
    assert pollex("forget", "--conversation", "anna-1").code == 0
    files = [path for path in store.rglob("*") if path.is_file()]
    assert not [path for path in files if b"Ottokar" in path.read_bytes()]
    kept = json.loads((store / "commands" / "ended" / "0123abcd.json").read_text())
    assert kept["told"]["n"] == 2
