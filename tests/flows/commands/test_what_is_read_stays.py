"""No command writes over what it reads: a log, a table or a calibrator may be all that there is of it."""

import hashlib
import os
from pathlib import Path

import pytest
from small_runs import Learnt, Pollex

from pollex.rubrics.rubric_set import RubricSet

PROFILE = Path(__file__).parents[3] / "examples" / "bikes.toml"
ASKED = ("judge", "log.csv", "--question", "Did it go well?", "--options", "yes,no")
MODEL = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "log.csv", "--rubrics", "RUBRICS", "--out", "log.csv"),
        ("score", "*.csv", "--rubrics", "RUBRICS", "--out", "./log.csv"),
        ("score", "log.csv", "--rubrics", "RUBRICS", "--out", "same.csv"),
        ("learn", "log.csv", "--out", "log.csv"),
        ("learn", "log.csv", "--domain", "d.toml", "--out", "d.toml"),
        ("learn", "report.html", "--out", "new.json"),
        ("refit", "log.csv", "*.html", "--rubrics", "RUBRICS", "--out", "new.json"),
        ("refit", "log.csv", "--rubrics", "RUBRICS", "--out", "log.csv"),
        ("label", "next", "log.csv", "--rubrics", "RUBRICS", "--out", "log.csv"),
        ("label", "next", "log.csv", "other.csv", "--calibrator", "kept", "--out", "other.csv"),
        ("calibrate", "predict", "kept", "log.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "log.csv", "other.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "other.csv", "log.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "other.csv", "other.csv", "--out", "kept/calibrator.json"),
        ("calibrate", "report", "kept", "other.csv", "other.csv", "--out", "kept/training.json"),
        (*ASKED, "--out", "log.csv"),
        (*ASKED, "--accepted", "log.csv"),
        (*ASKED, *MODEL, "--set", "instructions=other.csv", "--out", "other.csv"),
        (*ASKED, *MODEL, "--set", "domain=d.toml", "--accepted", "d.toml"),
        ("review", "last", "--answers", "other.csv", "--out", "other.csv"),
        ("answer", "log.csv", *MODEL, "--out", "log.csv"),
        ("grade", "log.csv", *MODEL, "--answers", "other.csv", "--out", "other.csv"),
        ("grade", "log.csv", *MODEL, "--page", "log.csv"),
        ("grade", "log.csv", *MODEL, "--human", "other.csv", "--out", "other.csv"),
        ("grade", "log.csv", *MODEL, "--profile", "d.toml", "--page", "d.toml"),
        ("answer", "log.csv", *MODEL, "--profile", "other.csv", "--out", "other.csv"),
    ],
)
def test_a_place_where_something_lies_that_is_read_is_refused(
    pollex: Pollex, learnt: Learnt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").mkdir()
    names = ("log.csv", "other.csv", "d.toml", "report.html", "kept/calibrator.json", "kept/training.json")
    files = [tmp_path / name for name in names]
    texts = dict.fromkeys(files, "all that there is\n") | {tmp_path / "d.toml": PROFILE.read_text("utf-8")}
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    os.link("log.csv", "same.csv")
    ended = pollex(*(str(learnt.rubrics) if each == "RUBRICS" else each for each in arguments))
    assert ended.code != 0
    assert "would overwrite an input file" in ended.err
    assert all(file.read_text("utf-8") == text for file, text in texts.items())


@pytest.mark.parametrize(
    "arguments",
    [
        ("review", "--accepted", "a.jsonl", "--out", "./a.jsonl"),
        (*ASKED, "--out", "a.jsonl", "--accepted", "a.jsonl"),
        ("grade", "log.csv", *MODEL, "--out", "a.jsonl", "--page", "a.jsonl"),
        ("learn", "log.csv", "--out", "report.html"),
    ],
)
def test_two_files_are_not_written_to_one_place(
    pollex: Pollex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("id,question\n", encoding="utf-8")
    ended = pollex(*arguments)
    assert (ended.code, "give each a name of its own" in ended.err) == (2, True)


@pytest.mark.parametrize("name", ["backup.sqlite", "secret", "store.sqlite"])
def test_no_file_of_a_store_is_written_over(
    pollex: Pollex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("id,question\n", encoding="utf-8")
    for file in (name, "store.sqlite"):
        (tmp_path / file).write_text("what was paid for\n", encoding="utf-8")
    ended = pollex(*ASKED, "--accepted", name)
    assert (ended.code, "a file of the store" in ended.err) == (2, True)
    assert (tmp_path / name).read_text("utf-8") == "what was paid for\n"


def test_scores_never_take_the_place_of_the_rubric_set(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    rubrics = tmp_path / "rubrics.jsonl"
    rubrics.write_bytes(learnt.rubrics.read_bytes())
    for arrays in learnt.rubrics.parent.glob("*.safetensors"):
        (tmp_path / arrays.name).write_bytes(arrays.read_bytes())
    ended = pollex("score", learnt.log, "--rubrics", rubrics, "--out", rubrics)
    assert (ended.code, "would overwrite an input file" in ended.err) == (2, True)
    assert rubrics.read_bytes() == learnt.rubrics.read_bytes()


def test_arrays_of_a_set_that_was_put_aside_are_not_removed(learnt: Learnt, tmp_path: Path) -> None:
    first = RubricSet.load(learnt.rubrics)
    arrays = b"other arrays"
    facts = first.calibrator.facts | {"arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    calibrator = first.calibrator.model_copy(update={"facts": facts})
    second = first.model_copy(update={"calibrator": calibrator}).with_arrays(arrays)
    first.save(tmp_path / "rubrics.json")
    (tmp_path / "rubrics.json").rename(tmp_path / "rubrics.old")
    second.save(tmp_path / "rubrics.json")
    assert RubricSet.load(tmp_path / "rubrics.old") == first
