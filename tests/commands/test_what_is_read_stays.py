"""No command writes over what it reads: a log, a table or a calibrator may be all that there is of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_runs import Learnt, Pollex

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
        ("refit", "log.csv", "--rubrics", "RUBRICS", "--out", "log.csv"),
        ("label", "next", "log.csv", "--rubrics", "RUBRICS", "--out", "log.csv"),
        ("label", "next", "log.csv", "other.csv", "--calibrator", "kept", "--out", "other.csv"),
        ("calibrate", "predict", "kept", "log.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "log.csv", "other.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "other.csv", "log.csv", "--out", "log.csv"),
        ("calibrate", "report", "kept", "other.csv", "other.csv", "--out", "kept/calibrator.json"),
        (*ASKED, "--out", "log.csv"),
        (*ASKED, "--accepted", "log.csv"),
        (*ASKED, "--answers", "other.csv", "--for-humans", "other.csv"),
        ("answer", "log.csv", *MODEL, "--out", "log.csv"),
        ("judge", "log.csv", "--reference", *MODEL, "--answers", "other.csv", "--out", "other.csv"),
        ("judge", "log.csv", "--reference", *MODEL, "--page", "log.csv"),
    ],
)
def test_a_place_where_something_lies_that_is_read_is_refused(
    pollex: Pollex, learnt: Learnt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [tmp_path / name for name in ("log.csv", "other.csv", "d.toml", "kept/calibrator.json")]
    (tmp_path / "kept").mkdir()
    for file in files:
        file.write_text("all that there is\n", encoding="utf-8")
    os.link("log.csv", "same.csv")
    ended = pollex(*(str(learnt.rubrics) if each == "RUBRICS" else each for each in arguments))
    assert ended.code != 0
    assert "would take the place of what is read" in ended.err
    assert all(file.read_text("utf-8") == "all that there is\n" for file in files)


def test_scores_never_take_the_place_of_the_rubric_set(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    rubrics = tmp_path / "rubrics.jsonl"
    rubrics.write_bytes(learnt.rubrics.read_bytes())
    for arrays in learnt.rubrics.parent.glob("*.safetensors"):
        (tmp_path / arrays.name).write_bytes(arrays.read_bytes())
    ended = pollex("score", learnt.log, "--rubrics", rubrics, "--out", rubrics)
    assert (ended.code, "would take the place of what is read" in ended.err) == (2, True)
    assert rubrics.read_bytes() == learnt.rubrics.read_bytes()
