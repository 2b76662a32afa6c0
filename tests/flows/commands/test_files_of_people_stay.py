"""What a person wrote or filled in is never lost to a command, if they didn't name the file to be written."""

import json
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Pollex

LABEL = (
    "label",
    "next",
    "log.jsonl",
    "--out",
    "to-label.jsonl",
    "--count",
    "3",
    "--store",
    "store",
)


@pytest.fixture
def log(pollex: Pollex) -> Path:
    path = Path("log.jsonl")
    rows = [dict(row) for row in small_log()]
    for row in rows[:10]:
        row.pop("thumbs")
    write_log(path, rows)
    return path


def test_thumbs_that_were_filled_in_are_not_written_over(log: Path, pollex: Pollex) -> None:
    assert pollex(*LABEL).code == 0
    # nobody filled in anything yet, so the same command may write it anew
    assert pollex(*LABEL).code == 0
    labelled = Path("to-label.jsonl")
    rows = [json.loads(line) for line in labelled.read_text("utf-8").splitlines()]
    write_log(labelled, [row | {"thumbs": "up"} for row in rows])
    before = labelled.read_bytes()
    again = pollex(*LABEL)
    assert again.code == 2
    assert "people filled in 3 rows" in again.err
    assert labelled.read_bytes() == before


def test_a_file_with_the_usual_name_that_pollex_did_not_write_stays(
    log: Path, pollex: Pollex
) -> None:
    assert pollex("learn", log, "--store", "store").code == 0
    Path("scores.parquet").write_text("my own", encoding="utf-8")
    refused = pollex("score", log, "--rubrics", "rubrics.json", "--store", "store")
    assert refused.code == 2
    assert Path("scores.parquet").read_text("utf-8") == "my own"
    Path("scores.parquet").unlink()
    for _ in range(2):
        scored = pollex("score", log, "--rubrics", "rubrics.json", "--store", "store")
        assert scored.code == 0, scored.err


def test_an_export_that_a_person_edited_is_not_written_over(log: Path, pollex: Pollex) -> None:
    assert pollex("learn", log, "--store", "store").code == 0
    export = ("export", "rubrics.json", "--to", "promptfoo", "--out", "ex", "--store", "store")
    for _ in range(2):
        exported = pollex(*export)
        assert exported.code == 0, exported.err
    config = Path("ex") / "promptfooconfig.yaml"
    config.write_text(config.read_text("utf-8") + "# mine\n", encoding="utf-8")
    assert pollex(*export).code == 2
    assert config.read_text("utf-8").endswith("# mine\n")
