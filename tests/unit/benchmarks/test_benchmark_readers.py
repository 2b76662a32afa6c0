"""Blind sheets: what is drawn, and what filled ones come to."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from readers import QUOTES, drawn, event_of, headlined, measure, write
from rubric_set_by_hand import rubric, rubric_set

from pollex.conversations.conversation import Conversation, Turn
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Quote

EVENTS = ("fail_left", "fail_else", "ask_again", "done_detail")


def event(number: int) -> ChosenRubric:
    quotes = tuple(
        Quote(conversation_id=f"c{number}{k}", turn=2, text=f"words {number} {k}", sure=1.0)
        for k in range(5)
    )
    changes = {
        "text": f"It happens {number}.",
        "source": f"event:{EVENTS[number % 4]}",
        "tells": "deed",
        "quotes": quotes,
    }
    return rubric(number, "dsat").model_copy(update=changes)


RUBRICS = [event(number) for number in range(12)]
TURNS = tuple(
    Turn(role=role, content=f"{role} {k}") for k, role in enumerate(["user", "assistant"] * 3)
)
TEXTS = {
    quote.conversation_id: Conversation(id=quote.conversation_id, turns=TURNS)
    for one in RUBRICS
    for quote in one.quotes
}


def test_every_eighth_pair_of_headline_rubrics_is_a_decoy_of_another_event_which_sheets_don_t_say(
    tmp_path: Path,
) -> None:
    chosen = rubric_set(rubrics=(event(1), event(2), rubric(3, "sat")))
    assert [one.text for one in headlined([chosen, chosen])] == ["It happens 1.", "It happens 2."]
    pairs = drawn(RUBRICS, 32, np.random.default_rng(0))
    assert (len(pairs), sum(pair.decoy for pair in pairs)) == (32, 4)
    for pair in pairs:
        owner = next(one for one in RUBRICS if pair.quote in one.quotes)
        assert pair.quote in owner.quotes[:QUOTES]
        assert (event_of(owner) != event_of(pair.rubric)) if pair.decoy else owner == pair.rubric
    write(tmp_path, pairs, RUBRICS, TEXTS)
    sheet = (tmp_path / "pairs.md").read_text(encoding="utf-8")
    assert sheet.count("> assistant: assistant 3") == 32  # the quote in its place
    assert "assistant 5" not in sheet
    assert "decoy" not in sheet
    assert len(json.loads((tmp_path / "key.json").read_text())["decoys"]) == 4


def figures(
    folder: Path, decoys: list[int], filled: dict[str, dict[str, list[str]]], **key: object
) -> list[str]:
    """Of sheets that readers filled in."""
    (folder / "key.json").write_text(json.dumps({"decoys": decoys, "rubrics": []} | key))
    for name, said in filled.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            form = csv.writer(file)
            form.writerow(["number", *said])
            form.writerows([n, *row] for n, row in enumerate(zip(*said.values(), strict=True), 1))
    return [line.strip() for line in measure(folder)]


def test_figures_of_filled_sheets_by_hand(tmp_path: Path) -> None:
    filled = {
        "pairs-ann": {"proves": ["y", "y", "y", "n", "n"]},
        "pairs-bo": {"proves": ["y", "Yes", "n", "n", "y"]},
        "rubrics-ann": {"act_on": ["y", "n"], "domain": ["y", ""]},
    }
    expected = {
        "decoys that passed, ann: 0.00 [0.00, 0.79] of 1",
        "ann: 0.75 [0.30, 0.95] of 4",
        "all readers: 0.50 [0.15, 0.85] of 4",
        "ann and bo agree: 0.60 [0.23, 0.88] of 5",
        "ann: 0.50 [0.09, 0.91] of 2",
        "ann: 1.00 [0.21, 1.00] of 1",
    }
    assert expected <= {*figures(tmp_path, [5], filled)}


def test_rubrics_of_the_model_and_built_in_ones_have_figures_of_their_own(tmp_path: Path) -> None:
    kinds = {"pairs": ["model", "built-in", "model", "built-in"], "rubrics": []}
    lines = figures(tmp_path, [2], {"pairs-ann": {"proves": ["y", "y", "n", "y"]}}, kinds=kinds)
    assert {"model, ann: 0.50 [0.09, 0.91] of 2", "built-in, ann: 1.00 [0.21, 1.00] of 1"} <= {
        *lines
    }


def test_an_answer_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="row 1"):
        figures(tmp_path, [], {"pairs-ann": {"proves": ["maybe"]}})
