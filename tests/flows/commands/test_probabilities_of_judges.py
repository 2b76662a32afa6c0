"""Probabilities on the command line: by judge, with entropy, and how many labels stand behind them."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import duckdb
import pytest
from known_judges import with_judges
from small_runs import Learnt, Pollex

from pollex.rubrics.rubric_set import RubricSet

JUDGES = ["=cmd", "o'hara"]
"""Names that a spreadsheet or SQL would take for something else."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".csv":
        return list(csv.DictReader(path.open(encoding="utf-8")))
    found = duckdb.sql(f"SELECT * FROM '{path}'")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.fixture
def rubrics(learnt: Learnt, tmp_path: Path) -> Path:
    with_judges(RubricSet.load(learnt.rubrics), JUDGES).save(tmp_path / "judged.json")
    return tmp_path / "judged.json"


def test_a_judge_whom_nobody_knows_stops_before_any_work(
    learnt: Learnt, rubrics: Path, pollex: Pollex, store: Path
) -> None:
    ended = pollex("score", learnt.log, "--rubrics", rubrics, "--judge", "nobody", "--store", store)
    assert ended.code == 2
    assert "no thumb of 'nobody' was learned from" in ended.err


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_every_format_has_a_column_for_each_judge(
    learnt: Learnt, rubrics: Path, pollex: Pollex, tmp_path: Path, store: Path, ending: str
) -> None:
    out = tmp_path / f"scores.{ending}"
    ended = pollex("score", learnt.log, "--rubrics", rubrics, "--out", out, "--judge", "all", "--store", store)
    assert ended.code == 0, ended.err
    for row in rows_of(out):
        strict, shared, mild = (float(row[name]) for name in ("probability_=cmd", "probability", "probability_o'hara"))
        assert strict < shared < mild
        entropy = -shared * math.log(shared) - (1 - shared) * math.log(1 - shared)
        assert float(row["entropy"]) == pytest.approx(entropy)


@pytest.mark.nightly
def test_an_evaluation_tells_how_true_probabilities_are_and_that_labels_are_missing(
    learnt: Learnt, pollex: Pollex, store: Path
) -> None:
    ended = pollex("evaluate", learnt.log, "--rubrics", learnt.rubrics, "--json", "--store", store)
    assert ended.code == 0, ended.err
    found = ended.last["probability"]
    assert found["n"] == ended.last["n"]
    assert {"log_loss", "brier", "smece", "share_log_loss", "share_brier", "gain"} <= found.keys()
    assert found["gain"] == pytest.approx(found["share_log_loss"] - found["log_loss"])
    assert (ended.last["calibrated"], ended.last["labels"] + ended.last["labels_missing"]) == (False, 50)
    assert f"{ended.last['labels_missing']} are missing" in ended.err
