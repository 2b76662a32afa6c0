"""Under ten thumbs of a class: hints of what is there, how many thumbs it takes, and what to label."""

import json
from pathlib import Path

import pytest
from small_runs import Pollex

from pollex.conversations.conversation import Label
from pollex.formats.read_logs import read_logs
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.few_thumbs import FEWEST_THUMBS_OF_EACH_CLASS, ThumbCounts

BIKES = Path(__file__).parents[3] / "examples" / "bikes.jsonl"


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Forty conversations, of which seven have a thumb up and five one down."""
    left = {"up": 7, "down": 5}
    rows = []
    for line in BIKES.read_text("utf-8").splitlines()[:40]:
        row = json.loads(line)
        said = str(row["thumbs"])
        if left.get(said, 0):
            left[said] -= 1
        else:
            del row["thumbs"]
        rows.append(json.dumps(row))
    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(rows), "utf-8")
    return path


def test_what_is_there_is_learned_as_hints_without_figures_and_a_queue_is_begun(
    pollex: Pollex, few: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rubrics.json"
    ended = pollex("learn", few, "--out", out, "--store", tmp_path / "store")
    assert ended.code == 0
    assert "7 thumbs up and 5 down are too few to choose rubrics by." in ended.out
    assert "AUC" not in ended.out
    rubrics = RubricSet.load(out).rubrics
    assert {one.stands for one in rubrics} == {"hint"}
    assert all(one.worth is None and one.quotes for one in rubrics)
    queue = tmp_path / "to-label.jsonl"
    assert str(queue) in ended.out.replace("\n", "")
    asked = {json.loads(line)["id"] for line in queue.read_text("utf-8").splitlines()}
    unlabeled = {one.id for one in read_logs(str(few)).conversations if one.label is Label.NONE}
    assert 10 <= len(asked) <= 20
    assert asked <= unlabeled


def test_what_to_label_next_needs_no_set_and_inspect_tells_the_same(
    pollex: Pollex, few: Path, tmp_path: Path
) -> None:
    drawn = pollex(
        "label",
        "next",
        few,
        "--count",
        "5",
        "--out",
        tmp_path / "next.jsonl",
        "--store",
        tmp_path / "store",
    )
    assert (drawn.code, "5 of 28 conversations" in drawn.out, "pollex learn LOGS" in drawn.out) == (
        0,
        True,
        True,
    )
    inspected = pollex("inspect", few)
    assert "7 thumbs up and 5 down are too few" in inspected.out


@pytest.mark.parametrize(
    ("up", "down", "few"),
    [(7, 5, True), (FEWEST_THUMBS_OF_EACH_CLASS, 30, True), (10, 10, False), (1, 9, False)],
)
def test_thumbs_are_few_below_ten_of_a_class(up: int, down: int, few: bool) -> None:
    assert ThumbCounts(up, down).few is few
