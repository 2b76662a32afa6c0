"""NetSAT worked by hand, and added in one place alone."""

import re
from pathlib import Path

import numpy as np

from pollex.selection.netsat import (
    add_candidate_values_to_scores,
    sum_rubric_columns_in_order,
    sum_rubric_values,
)

ROOT = Path(__file__).parents[3]


def test_signed_values_are_added_by_conversation() -> None:
    values = np.array([[2.5, -7.5, 10.0], [0.0, -10.0, 2.5]])
    assert sum_rubric_values(values).tolist() == [5.0, -7.5]
    assert sum_rubric_columns_in_order(values.T, 2).tolist() == [5.0, -7.5]
    assert sum_rubric_columns_in_order([], 2).tolist() == [0.0, 0.0]


def test_each_candidate_is_added_to_the_set_so_far() -> None:
    candidates = np.array([[10.0, 0.0], [-2.5, -5.0]])
    assert add_candidate_values_to_scores(np.array([1.0, 2.0]), candidates).tolist() == [
        [11.0, 2.0],
        [-1.5, -3.0],
    ]


def test_nobody_else_adds_the_values_of_rubrics() -> None:
    adds = re.compile(r"(?:values|matrix\(.*\))\[.*\]\.sum\((?:axis=)?1\)")
    folders = (ROOT / "selection", ROOT / "pollex" / "rubrics", ROOT / "pollex" / "services")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    assert [str(file) for file in files if adds.search(file.read_text("utf-8"))] == []
