"""Stars that several people gave, from the log to a row of scores."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Pollex

from pollex.rubrics.rubric_set import RubricSet

STARS = ("1", "2", "3", "4", "5")
RULES = ("--positive", ">=4", "--negative", "<=2")
LEARN = ("--label-field", "stars", *RULES, "--test-fraction", "0", "--also", "kind")
SCORE = """
import sys
from pollex.cli.main import main
try:
    main()
finally:
    print("torch" in sys.modules)
"""


def starred(count: int = 60) -> list[dict[str, object]]:
    """A log in which one of three raters, `carl`, gives a star less; and how kind each found the assistant.

    Three stars, which are no thumb, are grades like the others.
    """
    rows = small_log(count // 2)
    for place, row in enumerate(rows):
        best = 5 if row.pop("thumbs") == "up" else 2
        strict = place // 2 % 3 == 2
        row |= {
            "stars": 3 if place % 10 == 9 else best - strict,
            "kind": 3 - place % 2,
            "rater": ("anna", "ben", "carl")[place // 2 % 3],
        }
    return rows


@pytest.mark.nightly
def test_stars_by_three_raters_become_ratings_and_a_raters_own_probability(
    pollex: Pollex, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "stars.jsonl", starred())
    learned = pollex("learn", log, *LEARN, "--set", "judge_field=rater", "--out", "set.json")
    assert learned.code == 0, learned.err
    assert (
        "grades are learned beside thumbs, those of 6 without a thumb, too"
        in learned.out + learned.err
    )
    record = RubricSet.load(tmp_path / "set.json").calibrator
    assert record is not None
    assert record.why
    assert record.rating is not None
    assert (record.rating.question, list(record.rating.scales)) == ("stars", ["stars", "kind"])
    assert record.rating.labels == 60
    assert {row.name for row in record.rating.compared} == {
        "decorrelated NetSAT",
        "calibration network",
    }
    assert all(
        row.rmse.value and row.pearson.value and row.pearson.low for row in record.rating.compared
    )
    scored = pollex(
        "score",
        log,
        "--rubrics",
        "set.json",
        "--judge",
        "anna",
        "--judge",
        "carl",
        "--out",
        "s.jsonl",
    )
    assert scored.code == 0, scored.err
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 60
    for row in rows:
        shares = {star: row[f"rating_{star}"] for star in STARS}
        assert sum(shares.values()) == pytest.approx(1)
        assert row["rating"] == pytest.approx(sum(float(star) * p for star, p in shares.items()))
        assert row["rating_by_carl"] < row["rating_by_anna"]
        assert 0 < row["probability_carl"] < 1
    up, down = ([row["rating"] for row in rows[start::2]] for start in (0, 1))
    assert sum(up) > sum(down)
    again = [
        sys.executable,
        "-c",
        SCORE,
        "score",
        str(log),
        "--rubrics",
        "set.json",
        "--out",
        "again.jsonl",
    ]
    ended = subprocess.run(again, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert ended.stdout.splitlines()[-1] == "False", (
        "the weights are NumPy arrays; training alone loads torch"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--label-field", "stars", *RULES, "--also", "kind,polite"),
            "'polite' holds no two different grades",
        ),
        (("--also", "kind"), "holds no two different grades"),
    ],
)
def test_questions_beside_the_label_that_hold_no_grades_are_refused(
    pollex: Pollex, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    rows = [row | {"thumbs": "up" if int(str(row["stars"])) >= 4 else "down"} for row in starred()]
    refused = pollex("learn", write_log(tmp_path / "log.jsonl", rows), *options)
    assert refused.code == 2
    assert told in refused.err
    assert "--also" in refused.err


def test_grades_of_which_there_are_too_many_are_told_to_be_learned_as_thumbs_alone(
    pollex: Pollex, tmp_path: Path
) -> None:
    rows = [
        row | {"stars": 20 * int(str(row["stars"])) + place % 7}
        for place, row in enumerate(starred())
    ]
    rules = ("--positive", ">=80", "--negative", "<=50", "--test-fraction", "0")
    learned = pollex(
        "learn", write_log(tmp_path / "log.jsonl", rows), "--label-field", "stars", *rules
    )
    assert learned.code == 0, learned.err
    assert (
        "different grades: thumbs alone are learned; for grades, round them to 11 or fewer"
        in learned.out
    )
