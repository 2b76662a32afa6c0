"""`pollex forget` after a learning and a scoring run: nothing of a conversation is left, in whatever file."""

import json
import shutil
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex.store.resume import runs
from pollex.store.store import Store
from pollex.store.tables import LabelRow

SECRET = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."


@pytest.fixture
def folder(tmp_path: Path, learnt: Learnt, pollex: Pollex) -> Path:
    """A store with a learning run of the small log, whose first conversations are Anna's."""
    rows = small_log()
    for number in (0, 1):
        rows[number]["id"], rows[number]["user_id"] = f"anna-{number}", "anna"
        rows[number]["messages"][-1]["content"] += f" {SECRET}"
    write_log(tmp_path / "log.jsonl", rows)
    shutil.copytree(learnt.store / "embeddings", tmp_path / ".pollex" / "embeddings")
    ended = pollex("learn", "log.jsonl", "--out", "rubrics.json")
    assert ended.code == 0, ended.err
    assert pollex("score", "log.jsonl", "--rubrics", "rubrics.json", "--out", "scores.parquet").code == 0
    return tmp_path


def bytes_left(folder: Path, text: str) -> list[str]:
    """Files that hold a text, plainly or in JSON; columns are read as rows."""
    import duckdb

    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content = str(duckdb.sql(f"SELECT * FROM '{path}'").fetchall()).encode()
        if text.encode() in content:
            found.append(path.name)
    return found


def test_nothing_is_left_of_a_users_conversations_not_even_in_free_pages(folder: Path, pollex: Pollex) -> None:
    store = folder / ".pollex"
    with Store.open(store) as kept:
        run = runs(kept)[0].id
        kept.put([LabelRow("ben", "h", "anna-0", run, "q", json.dumps(SECRET))])
        kept.put([LabelRow("ben", "h2", "debug-1", run, "q", json.dumps("yes"))])
    assert bytes_left(store, SECRET)
    page = folder / "mine.html"
    page.write_text(f"<p>{SECRET.replace('seventeen', '<b>seventeen</b>')}</p>")
    before = (folder / "report.html").read_bytes()
    looked = pollex("forget", "--user", "anna", "--dry-run")
    assert looked.code == 3
    assert all(name in looked.out for name in ("mine.html", "report.html", "rubrics.json", "scores.parquet"))
    assert (folder / "report.html").read_bytes() == before
    ended = pollex("forget", "--user", "anna", "--rewrite")
    assert ended.code == 0, ended.out + ended.err
    assert bytes_left(store, SECRET) == []
    assert bytes_left(store, "anna-0") == bytes_left(store, "anna-1") == []
    assert SECRET in (folder / "log.jsonl").read_text()  # the log is the user's own
    (folder / "log.jsonl").unlink()
    assert bytes_left(folder, SECRET) == []
    with Store.open(store) as kept:
        assert kept.value("SELECT count(*) FROM labels") == 1
        left = kept.ask(run, "SELECT count(*) AS n FROM conversations")[0]["n"]
        assert left == len(small_log()) - 2
        assert kept.ask(run, "SELECT count(DISTINCT conversation) AS n FROM answers")[0]["n"] <= left
    assert pollex("trace", "last").code == 0
    assert pollex("score", write_log(folder / "new.jsonl", small_log()), "--rubrics", "rubrics.json").code == 0
