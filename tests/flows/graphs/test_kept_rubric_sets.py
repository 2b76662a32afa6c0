"""Rubric sets as files that people edit: what vanishes nowhere, and what is read as it was written."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import Learnt

from pollex.errors import BadRubrics
from pollex.rubrics.rubric_set import RubricSet


@pytest.fixture
def saved(learnt: Learnt, tmp_path: Path) -> Path:
    for file in learnt.rubrics.parent.glob(f"{learnt.rubrics.stem}*"):
        shutil.copy(file, tmp_path)
    return tmp_path / learnt.rubrics.name


def test_a_field_that_stands_there_twice_is_refused(saved: Path) -> None:
    text = saved.read_text("utf-8")
    saved.write_text(
        text.replace('"polarity": "sat"', '"text": "The user laughs.", "polarity": "sat"', 1),
        "utf-8",
    )
    with pytest.raises(BadRubrics, match="the key 'text' stands twice in one object → correct it"):
        RubricSet.load(saved)


def test_a_text_that_no_file_can_hold_is_read_so_that_it_can_be_written(saved: Path) -> None:
    text = saved.read_text("utf-8")
    saved.write_text(
        text.replace('\n "notes": [', '\n "notes": ["half \\ud83d of one", ', 1), "utf-8"
    )
    rubrics = RubricSet.load(saved)
    assert rubrics.notes[0] == "half \ufffd of one"
    rubrics.save(saved)
    assert RubricSet.load(saved) == rubrics


CAN = {
    "model": "m",
    "json_schema": True,
    "tools": True,
    "json_object": True,
    "logprobs": 5,
    "n": True,
    "seed": True,
}
CAN |= {"temperature": True, "limit_field": "max_tokens", "window": None, "calls": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples: Input should be greater than or equal to 1"),
        ({"seed": "x"}, "seed: Input should be a valid integer"),
        ({"without": None}, "without: Input should be a valid frozenset"),
        ({"closing": "shouted"}, "closing: Input should be"),
        (
            {"capabilities": CAN | {"logprobs": "many"}},
            "capabilities.logprobs: Input should be a valid integer",
        ),
        ({"capabilities": {}}, "capabilities.model: Field required"),
    ],
)
def test_a_judge_that_can_not_be_asked_so_is_refused_with_the_field(
    saved: Path, options: dict[str, Any], message: str
) -> None:
    judge = {
        "kind": "llm",
        "name": "m",
        "fingerprint": "",
        "options": {"samples": 2, "capabilities": CAN} | options,
    }
    saved.write_text(json.dumps(json.loads(saved.read_text("utf-8")) | {"judge": judge}), "utf-8")
    with pytest.raises(BadRubrics, match=f"judge.options.{message}"):
        RubricSet.load(saved)
