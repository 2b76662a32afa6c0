"""Which option an answer names."""

from typing import Any

import pytest

from pollex.agents.llm.parsing import find_named_option

YES_NO = ["yes", "no"]
AGREEING = ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree", "Never came up"]


@pytest.mark.parametrize(
    "answer", ["yes", "Yes", "YES.", "Yes!", '"yes"', "**Yes.**", "`yes`", "“Yes”", True, "true"]
)
def test_case_marks_and_the_obvious_boolean_are_folded(answer: Any) -> None:
    assert find_named_option(answer, YES_NO) == 0
    assert find_named_option(False, YES_NO) == find_named_option("False", YES_NO) == 1
    assert find_named_option("yes", ["False", "True", "unclear"]) == 1
    for written in ("Strongly agree", "strongly_agree", "strongly-agree.", "STRONGLY  AGREE"):
        assert find_named_option(written, AGREEING) == 4


@pytest.mark.parametrize(
    "answer", ["Ja", "yes and no", "No, it wasn't", "y", "1", 1, 0, None, "", "...", "yes?"]
)
def test_nothing_is_guessed_or_translated(answer: Any) -> None:
    assert find_named_option(answer, YES_NO) is None


def test_where_more_than_one_option_fits_none_is_named() -> None:
    assert find_named_option("a", ["A", "A."]) is None
    assert find_named_option("A.", ["A", "A."]) == 1
    assert find_named_option(True, ["yes", "true", "no"]) is None
    assert find_named_option(True, AGREEING) is None
