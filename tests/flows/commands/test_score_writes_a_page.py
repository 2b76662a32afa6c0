"""`score` writes a page beside its rows; CSV has a column a rubric, other forms with `--set wide=yes`."""

import csv
import json
from pathlib import Path

from small_runs import Learnt, Pollex

from pollex.formats.scores import wide_column_of
from pollex.rubrics.rubric_set import RubricSet


def test_score_writes_its_page_beside_and_csv_has_a_column_a_rubric_in_place_of_lists(
    pollex: Pollex, learnt: Learnt, tmp_path: Path
) -> None:
    arguments = ("--rubrics", learnt.rubrics, "--store", tmp_path / "store")
    ended = pollex("score", learnt.log, *arguments, "--out", "scores.csv")
    assert ended.code == 0, ended.err
    page = (tmp_path / "scores.html").read_text(encoding="utf-8")
    assert "What lowers scores" in page
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [wide_column_of(rubric.id) for rubric in RubricSet.load(learnt.rubrics).rubrics]
    assert all(0 <= float(row[column]) <= 10 for row in rows for column in columns)
    assert not any("[" in cell or "{" in cell for row in rows for cell in row.values())
    assert rows[0]["id"] in page
    pollex("score", learnt.log, *arguments, "--out", "scores.jsonl", "--set", "wide=yes")
    first = json.loads((tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert {answer["rubric"]: answer["value"] for answer in first["answers"]} == {
        column.removeprefix("rubric_"): first[column] for column in columns
    }


def test_a_page_of_somebody_else_is_not_overwritten(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    (tmp_path / "scores.html").write_text("mine", encoding="utf-8")
    arguments = ("--rubrics", learnt.rubrics, "--store", tmp_path / "store", "--out", "scores.csv")
    assert pollex("score", learnt.log, *arguments).code == 0
    assert (tmp_path / "scores.html").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "scores-scores.html").exists()
