"""`pollex answer` and `pollex grade` where nobody is asked: wrong use, help, and files of rows."""

import csv
import json
from pathlib import Path

import duckdb
import pytest
from small_log import write_log
from small_runs import Pollex

from pollex.formats.write import write_rows
from pollex.rooms.grade.conversations.references import ReferenceCase, ReferenceCases
from pollex.rooms.grade.services.grade import choose_profile

QUESTION = {
    "question_id": 1,
    "question": "Why?",
    "reference": "Because.",
    "category": "知识",
    "answer": "So.",
}
NOWHERE = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
COLUMNS = {
    "id": "VARCHAR",
    "overall": "DOUBLE",
    "grades": "MAP(VARCHAR, DOUBLE)",
    "flags": "VARCHAR[]",
}
ROWS = [
    {
        "id": "=1+1",
        "overall": 7.5,
        "grades": {"need": 7.0, "clarity": 8.0},
        "flags": ["no reference"],
    },
    {"id": "b\ud800", "overall": None, "grades": {}, "flags": []},
]


def test_a_plan_needs_no_server_and_a_type_that_stands_in_a_column_of_another_name_is_not_asked_for(
    pollex: Pollex,
) -> None:
    def calls(*arguments: str, **fields: str) -> dict[str, int]:
        write_log(Path("q.jsonl"), [QUESTION | fields])
        plan = pollex(
            arguments[0], "q.jsonl", *arguments[1:], "--dry-run", "--json", *NOWHERE
        ).last["plan"]
        return {stage: row["calls"] for stage, row in plan.items()}

    assert calls("grade", "--plain") == {"classify": 1, "grade": 1, "grade_plainly": 1, "all": 3}
    assert calls("answer")["answer"] == 1
    assert "classify" not in calls("grade", "--set", "category_field=kind", kind="advice")


def test_the_profile_is_in_the_questions_language_unless_one_is_named() -> None:
    for question, language in {
        "为什么天空是蓝色的？": "中文",
        "Why does the sky look blue?": "English",
    }.items():
        cases = ReferenceCases((ReferenceCase(id="1", question=question),))
        assert language in choose_profile(None, cases).language
        assert "English" in choose_profile("english", cases).language


def test_rows_are_the_same_in_every_format_and_those_that_fail_half_way_leave_no_file(
    tmp_path: Path,
) -> None:
    files = [tmp_path / f"rows.{ending}" for ending in ("jsonl", "csv", "parquet")]
    for file in files:
        with pytest.raises(KeyError):
            write_rows(file, [ROWS[0], {"id": "no more fields"}], COLUMNS)
    assert list(tmp_path.iterdir()) == []
    for file in files:
        write_rows(file, ROWS, COLUMNS)
    lines = [json.loads(line) for line in files[0].read_text("utf-8").splitlines()]
    assert lines == [ROWS[0], ROWS[1] | {"id": "b?"}]
    with files[1].open(encoding="utf-8", newline="") as file:
        cells = list(csv.reader(file))
    assert cells[1] == ["'=1+1", "7.5", '{"need": 7.0, "clarity": 8.0}', '["no reference"]']
    found = duckdb.sql(f"SELECT * FROM '{files[2]}'").fetchall()
    assert found == [
        ("=1+1", 7.5, {"need": 7.0, "clarity": 8.0}, ["no reference"]),
        ("b?", None, {}, []),
    ]
