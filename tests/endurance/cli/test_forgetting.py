"""`pollex forget` after learning and scoring: no word of a conversation is left, in whatever file and form."""

import gzip
import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex.store.folder import DRAFT_COPIES_FOLDER_NAME
from pollex.store.outputs import list_outputs
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store
from pollex.store.tables import FactRow, LabelRow

SECRET = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."
WORDS = re.compile(r"ottokar|alpacas|lighthouse|anna-[01]|anna@", re.IGNORECASE)


@pytest.fixture
def folder(tmp_path: Path, learnt: Learnt, pollex: Pollex) -> Path:
    """A store with a learning run of the small log, whose first conversations are Anna's, and all that was written."""
    rows = small_log()
    for number in (0, 1):
        rows[number]["id"], rows[number]["user_id"] = f"anna-{number}", "anna@example.com"
        rows[number]["messages"][-1]["content"] += f" {SECRET}"
    write_log(tmp_path / "log.jsonl", rows)
    shutil.copytree(learnt.store / "embeddings", tmp_path / ".pollex" / "embeddings")
    for words in (
        ("learn", "log.jsonl", "--out", "made/rubrics.json"),
        *(
            ("score", "log.jsonl", "--rubrics", "made/rubrics.json", "--out", f"scores/{name}")
            for name in SCORES
        ),
        (
            "compare",
            "log.jsonl",
            "log.jsonl",
            "--rubrics",
            "made/rubrics.json",
            "--page",
            "compare.html",
        ),
    ):
        ended = pollex(*words)
        assert ended.code in (0, 3), ended.err
    return tmp_path


SCORES = ("s.jsonl", "s.csv", "s.parquet")


def places_of_words(folder: Path) -> list[str]:
    """Files that hold a word of the conversations in any form: escaped, packed, or as columns."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [
        str(path.relative_to(folder)) for path in files if any(map(WORDS.search, forms_of(path)))
    ]


def forms_of(path: Path) -> Iterator[str]:
    """What a file holds, as it is and with what was packed or escaped in it made plain."""
    import duckdb

    content = path.read_bytes()
    if path.suffix == ".parquet":
        yield str(duckdb.sql(f"SELECT * FROM '{path}'").fetchall())
        return
    for begin, unpack in (
        (b"\x1f\x8b", gzip.decompress),
        (b"\x28\xb5\x2f\xfd", zstandard.decompress),
    ):
        content = unpack(content) if content.startswith(begin) else content
    plain = content.decode("utf-8", "replace")
    yield plain
    yield html.unescape(plain)
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), plain)


def test_no_word_of_a_users_conversations_is_left_in_any_byte(folder: Path, pollex: Pollex) -> None:
    store = folder / ".pollex"
    with Store.open(store) as kept:
        run = list_stored_runs(kept)[0].id
        kept.put([LabelRow("ben", "h", "anna-0", run, "q", json.dumps(SECRET))])
        kept.put([LabelRow("ben", "h2", "debug-1", run, "q", json.dumps("yes"))])
        kept.put(
            [
                FactRow(
                    "",
                    "state",
                    "event",
                    json.dumps({"note": "Ottokar's alpacas \u00e9", "who": "ben"}),
                )
            ]
        )
        written = {Path(output.path).name for output in list_outputs(kept)}
    assert {"rubrics.json", "report.html", *SCORES} <= written
    copy = store / DRAFT_COPIES_FOLDER_NAME / "0a1b2c3d-1-0a1b"
    copy.mkdir(parents=True)
    (copy / "log.jsonl").write_text(json.dumps({"id": "anna-0", "said": SECRET}))
    (folder / "scores" / ".s.jsonl.0a1b2c3d").write_text(SECRET)  # as a kill leaves it
    page = folder / "mine.html"
    page.write_text(
        f'<p title="{SECRET}">{SECRET.replace("seventeen", "<b>seventeen</b>")}</p><i>Ottokar</i>'
    )
    before = (folder / "made" / "report.html").read_bytes()
    looked = pollex("forget", "--user", "anna@example.com", "--dry-run")
    assert looked.code == 3
    assert all(name in looked.out for name in ("mine.html", "report.html", "rubrics.json", *SCORES))
    assert (folder / "made" / "report.html").read_bytes() == before
    ended = pollex("forget", "--user", "anna@example.com", "--rewrite")
    assert ended.code == 0, ended.out + ended.err
    assert SECRET in (folder / "log.jsonl").read_text()  # the log is the user's own
    (folder / "log.jsonl").unlink()
    assert places_of_words(folder) == []

    # What is left works on.
    with Store.open(store) as kept:
        assert kept.value("SELECT count(*) FROM labels") == 1
        left = kept.ask(run, "SELECT count(*) AS n FROM conversations")[0]["n"]
        assert left == len(small_log()) - 2
        assert (
            kept.ask(run, "SELECT count(DISTINCT conversation) AS n FROM answers")[0]["n"] <= left
        )
    assert len((folder / "scores" / "s.csv").read_text().splitlines()) == 1 + left
    assert len((folder / "scores" / "s.jsonl").read_text().splitlines()) == left
    assert pollex("trace", "last").code == 0
    assert (
        pollex(
            "score", write_log(folder / "new.jsonl", small_log()), "--rubrics", "made/rubrics.json"
        ).code
        == 0
    )


def test_a_file_that_was_moved_is_found_by_its_content_or_named(
    folder: Path, pollex: Pollex
) -> None:
    # outside of the folder nobody looks for it
    elsewhere = folder.parent / f"{folder.name}-elsewhere"
    elsewhere.mkdir()
    (folder / "scores" / "s.jsonl").rename(elsewhere / "mine.txt")
    (folder / "below").mkdir()
    (folder / "scores" / "s.csv").rename(folder / "below" / "renamed.csv")
    ended = pollex("forget", "--user", "anna@example.com", "--rewrite")
    assert ended.code == 3
    assert "s.jsonl: pollex wrote it, and it is no longer there" in ended.out.replace("\n", " ")
    assert "anna-0" not in (folder / "below" / "renamed.csv").read_text()
