"""`pollex answer` and `pollex grade` where nobody is asked: wrong use, help, and files of rows."""

import csv
import json
from pathlib import Path

import duckdb
import pytest
from small_runs import Pollex

from pollex.conversations.references import Case, Cases
from pollex.errors import WrongUse
from pollex.formats.write import require_format, write_rows
from pollex.services.grade import profile_for

QUESTION = {"question_id": 1, "question": "Why?", "reference": "Because.", "category": "知识"}
NOWHERE = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
COLUMNS = {"id": "VARCHAR", "overall": "DOUBLE", "grades": "MAP(VARCHAR, DOUBLE)", "flags": "VARCHAR[]"}
ROWS = [
    {"id": "=1+1", "overall": 7.5, "grades": {"need": 7.0, "clarity": 8.0}, "flags": ["no reference"]},
    {"id": "b\ud800", "overall": None, "grades": {}, "flags": []},
]


@pytest.fixture
def questions() -> str:
    """A file with a question that has an answer, in the folder where commands run."""
    Path("q.jsonl").write_text(json.dumps(QUESTION | {"answer": "So."}) + "\n")
    Path("unanswered.jsonl").write_text(json.dumps(QUESTION) + "\n")
    return "q.jsonl"


def test_a_type_that_stands_in_a_column_of_another_name_is_not_asked_for(pollex: Pollex, questions: str) -> None:
    Path(questions).write_text(json.dumps(QUESTION | {"answer": "So.", "kind": "advice"}) + "\n")
    planned = pollex("grade", questions, "--set", "category_field=kind", "--dry-run", "--json", *NOWHERE)
    assert "classify" not in json.loads(planned.out.splitlines()[-1])["plan"]


SKY = ("为什么天空在白天看起来是蓝色的？", "Why does the sky look blue by day?")


@pytest.mark.parametrize(("question", "language"), [(SKY[0], "中文"), (SKY[1], "English")])
def test_the_profile_is_in_the_questions_language_unless_one_is_named(question: str, language: str) -> None:
    cases = Cases((Case(id="1", question=question),))
    assert language in profile_for(None, cases).language
    assert "English" in profile_for("english", cases).language


def test_a_plan_needs_no_server(pollex: Pollex, questions: str) -> None:
    ended = pollex("grade", questions, "--plain", "--dry-run", "--json", *NOWHERE)
    plan = json.loads(ended.out.splitlines()[-1])["plan"]
    assert {stage: row["calls"] for stage, row in plan.items()} == {
        "classify": 1,
        "grade": 1,
        "grade_plainly": 1,
        "all": 3,
    }
    ended = pollex("answer", questions, "--dry-run", "--json", *NOWHERE)
    assert json.loads(ended.out.splitlines()[-1])["plan"]["answer"]["calls"] == 1


NOT_FOR_ANSWERS = ["--canary", "--elicitation=batched", "--samples=2", "--require=logprobs", "--closing=user"]
NOT_FOR_ANSWERS += ["--without=ds", "--value=mode", "--straight-lining", "--embedding-model=m", "--positive=good"]


def test_a_file_of_no_known_format_is_refused_and_so_is_one_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"use \.jsonl, \.csv, \.parquet"):
        require_format(tmp_path / "rows")
    (tmp_path / "file").touch()
    with pytest.raises(WrongUse, match="is not a writable folder"):
        require_format(tmp_path / "file" / "rows.csv")


def test_rows_that_fail_half_way_leave_no_file(tmp_path: Path) -> None:
    for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
        with pytest.raises(KeyError):
            write_rows(tmp_path / name, [ROWS[0], {"id": "no more fields"}], COLUMNS)
    assert list(tmp_path.iterdir()) == []


def test_rows_are_the_same_in_every_format(tmp_path: Path) -> None:
    for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
        write_rows(tmp_path / name, ROWS, COLUMNS)
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text("utf-8").splitlines()]
    assert lines == [ROWS[0], ROWS[1] | {"id": "b?"}]
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.reader(file))
    assert cells[1] == ["'=1+1", "7.5", '{"need": 7.0, "clarity": 8.0}', '["no reference"]']
    found = duckdb.sql(f"SELECT * FROM '{tmp_path / 'rows.parquet'}'").fetchall()
    assert found == [("=1+1", 7.5, {"need": 7.0, "clarity": 8.0}, ["no reference"]), ("b?", None, {}, [])]
