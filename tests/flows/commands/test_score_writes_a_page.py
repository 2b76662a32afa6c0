"""`score` writes a page beside its rows, and with `--set wide=yes` a column a rubric."""

from __future__ import annotations

import csv
from pathlib import Path

from small_runs import Learnt, Pollex

from pollex.formats.scores import wide_column_of
from pollex.rubrics.rubric_set import RubricSet


def test_score_writes_its_page_beside_and_wide_rows_have_a_column_a_rubric(
    pollex: Pollex, learnt: Learnt, tmp_path: Path
) -> None:
    arguments = ("--rubrics", learnt.rubrics, "--store", tmp_path / "store", "--out", "scores.csv", "--set", "wide=yes")
    ended = pollex("score", learnt.log, *arguments)
    assert ended.code == 0, ended.err
    page = (tmp_path / "scores.html").read_text(encoding="utf-8")
    assert "What lowers scores" in page
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [wide_column_of(rubric.id) for rubric in RubricSet.load(learnt.rubrics).rubrics]
    assert all(0 <= float(row[column]) <= 10 for row in rows for column in columns)
    assert rows[0]["id"] in page


def test_a_page_of_somebody_else_is_not_overwritten(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    (tmp_path / "scores.html").write_text("mine", encoding="utf-8")
    arguments = ("--rubrics", learnt.rubrics, "--store", tmp_path / "store", "--out", "scores.csv")
    assert pollex("score", learnt.log, *arguments).code == 0
    assert (tmp_path / "scores.html").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "scores-scores.html").exists()
