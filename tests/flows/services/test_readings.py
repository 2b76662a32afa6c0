"""Logs that were brought to a store: kept by name with how they are read, and found again by the verbs."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import run_here

from pollex.errors import WrongUse
from pollex.services.readings import (
    LogReading,
    find_reading,
    keep_reading,
    list_readings,
    named_options,
    new_reading,
    reading_like,
    remove_halves,
    remove_reading,
)

GERMAN = {
    "columns": "conversation=nr,role=wer,text=was,label=note",
    "roles": "user=Kunde,assistant=Bot",
    "positive": "gut",
    "negative": "schlecht",
}


def brought(store: Path, title: str = "Chats März.csv") -> LogReading:
    reading = new_reading(store, title)
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
        named_options((first.argument, second.argument), tmp_path)
    assert named_options(("other.jsonl",), tmp_path) == {}


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
    assert reading_like(tmp_path, ["was", "wer", "note", "nr"]) == reading
    assert reading_like(tmp_path, []) is None
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (reading.folder, reading.folder / "reading.json")
    }
    assert modes == {0o700, 0o600}


def test_a_removed_log_a_damaged_one_and_half_an_upload_are_not_listed(tmp_path: Path) -> None:
    reading = brought(tmp_path)
    half = new_reading(tmp_path, "half.csv")
    damaged = brought(tmp_path)
    (damaged.folder / "reading.json").write_text("[", "utf-8")
    remove_halves(tmp_path)
    assert not half.folder.exists()
    assert find_reading(tmp_path, reading.id).sources == (str(reading.folder / "ab.csv"),)
    remove_reading(reading)
    assert list_readings(tmp_path, kept_only=False) == []
