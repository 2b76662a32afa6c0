"""Logs that were brought to a store: kept by name with how they are read, and found again by the verbs."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import run_here

from pollex.errors import WrongUse
from pollex.services.readings import (
    LogReading,
    find_reading,
    find_reading_of_columns,
    keep_reading,
    list_readings,
    make_reading,
    read_named_options,
    remove_incomplete_logs,
    remove_reading,
)

GERMAN = {
    "columns": "conversation=nr,role=wer,text=was,label=note",
    "roles": "user=Kunde,assistant=Bot",
    "positive": "gut",
    "negative": "schlecht",
}


def brought(store: Path, title: str = "Chats März.csv") -> LogReading:
    reading = make_reading(store, title)
    lines = [
        f"{n},{who},{said},{note}"
        for n, note in enumerate(("gut", "schlecht"))
        for who, said in (("Kunde", "Wo ist es?"), ("Bot", "Ich sehe nach."))
    ]
    (reading.folder / "ab.csv").write_text("\n".join(["nr,wer,was,note", *lines]), "utf-8")
    return keep_reading(
        replace(
            reading,
            files=("ab.csv",),
            titles=(title,),
            options=GERMAN,
            columns=("nr", "wer", "was", "note"),
            is_kept=True,
        )
    )


def test_a_verb_reads_a_log_by_its_name_with_the_options_that_were_kept(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    assert reading.argument == "log:Chats-März"
    ended = run_here("inspect", reading.argument, "--store", tmp_path)
    assert "The thumb is 'note': 1 up, 1 down, 0 not rated." in ended.out, ended.err
    other = run_here("inspect", reading.argument, "--store", tmp_path, "--positive", "schlecht")
    assert "'schlecht' is in positive and negative" in other.err


def test_a_name_that_no_log_has_is_refused_with_those_there_are(tmp_path: Path) -> None:
    brought(tmp_path)
    ended = run_here("inspect", "log:other", "--store", tmp_path)
    assert ended.code == 2
    assert "no log was brought under the name 'other' → known are Chats-März" in ended.err


def test_logs_that_are_read_in_different_ways_are_not_read_together(tmp_path: Path) -> None:
    first = brought(tmp_path)
    second = keep_reading(replace(brought(tmp_path), options={}))
    assert second.name == "Chats-März-2"
    with pytest.raises(WrongUse, match="are read in different ways"):
        read_named_options((first.argument, second.argument), tmp_path)
    assert read_named_options(("other.jsonl",), tmp_path) == {}


def test_logs_are_listed_and_found_by_columns_and_only_their_owner_may_read_them(
    tmp_path: Path,
) -> None:
    reading = brought(tmp_path)
    draft = keep_reading(replace(brought(tmp_path, "../../etc/passwd"), is_kept=False))
    assert draft.name == "passwd"
    assert list_readings(tmp_path) == [reading]
    assert {listed.id for listed in list_readings(tmp_path, kept_only=False)} == {
        reading.id,
        draft.id,
    }
    assert find_reading_of_columns(tmp_path, ["was", "wer", "note", "nr"]) == reading
    assert find_reading_of_columns(tmp_path, []) is None
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (reading.folder, reading.folder / "reading.json")
    }
    assert modes == {0o700, 0o600}


def test_a_removed_log_a_damaged_one_and_half_an_upload_are_not_listed(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    half = make_reading(tmp_path, "half.csv")
    damaged = brought(tmp_path)
    (damaged.folder / "reading.json").write_text("[", "utf-8")
    remove_incomplete_logs(tmp_path)
    assert not half.folder.exists()
    assert find_reading(tmp_path, reading.id).sources == (str(reading.folder / "ab.csv"),)
    remove_reading(reading)
    assert list_readings(tmp_path, kept_only=False) == []


ODD: dict[str, Any] = {
    "created": 5, "name": 5, "titles": [], "files": [5], "places": [5], "options": [1],
    "notes": [{"a": 1}], "columns": [[1]], "is_kept": "yes", "conversations": "<b>",
}  # fmt: skip
LEADING_OUT = (
    "../../../log.jsonl", "/etc/passwd", "..", ".", "a/b", "", "*", ".hidden", "a\0b", "a\n",
    "duckdb:x?SELECT 1", "s3://b/x", "log:x",
)  # fmt: skip


def written(reading: LogReading, **changes: Any) -> None:
    path = reading.folder / "reading.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def test_a_reading_that_is_not_sound_is_none(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    contents = [{name: value} for name, value in ODD.items()]
    contents += [{"files": [name]} for name in LEADING_OUT]
    contents += [{"name": name} for name in ("", "a/b", "a b", "a\n", "x" * 200)]
    contents += [{"created": "today"}, {"conversations": -1}, {"places": ["a\0b"]}]
    sound = (reading.folder / "reading.json").read_text("utf-8")
    for changes in contents:
        written(reading, **changes)
        assert list_readings(tmp_path, kept_only=False) == [], changes
        (reading.folder / "reading.json").write_text(sound, "utf-8")
    assert list_readings(tmp_path) == [reading]
    for text in ("5", "null", "[" * 100_000, '{"a": 1e9999}'):
        (reading.folder / "reading.json").write_text(text, "utf-8")
        assert list_readings(tmp_path, kept_only=False) == [], text[:20]


def test_a_reading_says_how_rows_are_read_and_nothing_else_that_a_verb_does(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    hostile = {"base_url": "http://evil", "model": "m", "out": "x", "store": "y", "max_bad": "z"}
    written(reading, options=GERMAN | hostile | {"encoding": 5, "pairs": 1})
    (unsound,) = list_readings(tmp_path, kept_only=False)
    assert unsound.options == GERMAN
    assert not unsound.is_kept, "a person says anew how it is read"
    written(reading, options={"roles": {"user": ["Kunde"]}, "max_bad": 3, "pairs": True})
    assert list_readings(tmp_path)[0].options["roles"] == {"user": ["Kunde"]}


@pytest.mark.parametrize("verb", ["inspect", "compare"])
def test_a_place_that_the_store_of_a_stranger_names_is_told_and_not_read(
    tmp_path: Path, verb: str
) -> None:
    elsewhere = tmp_path / "private.jsonl"
    elsewhere.write_text(json.dumps({"id": "a", "messages": [{"role": "user", "content": "PIN"}]}))
    place = keep_reading(
        replace(
            make_reading(tmp_path / "store", "far"), places=(str(elsewhere),), titles=("far.jsonl",)
        )
    )
    words = ("inspect", "log:far") if verb == "inspect" else ("compare", "log:far", elsewhere)
    if verb == "compare":
        words = (*words, "--rubrics", "generic")
    assert find_reading(tmp_path / "store", "far").is_own

    # the seal is of the file as it was written: a changed one is a stranger's
    written(place, columns=["id"])
    ended = run_here(*words, "--store", tmp_path / "store")
    assert (ended.code, "PIN" in ended.out) == (2, False)
    assert "private.jsonl: this store comes from elsewhere" in ended.err.replace("\n", " ")

    # whoever counts a stranger's log doesn't make it this user's
    keep_reading(replace(find_reading(tmp_path / "store", "far"), conversations=None))
    assert not find_reading(tmp_path / "store", "far").is_own


def test_a_file_of_a_brought_log_that_is_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    file = reading.folder / "ab.csv"
    file.rename(tmp_path / "elsewhere.csv")
    file.symlink_to(tmp_path / "elsewhere.csv")
    ended = run_here("inspect", reading.argument, "--store", tmp_path)
    assert "it is a link, and is not followed" in ended.err
    file.unlink()
    os.mkfifo(file)
    ended = run_here("inspect", reading.argument, "--store", tmp_path)
    assert "it is no file of a store" in ended.err
