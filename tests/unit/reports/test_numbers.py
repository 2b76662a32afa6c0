"""Numbers in words."""

import pytest

from pollex.measures.intervals import Figure
from pollex.reports.numbers import (
    SPACE,
    count,
    interval,
    interval_in_words,
    listed,
    number,
    percent,
    percent_interval,
    points,
)


@pytest.mark.parametrize("value", [None, float("nan"), float("-inf")])
def test_what_is_no_number_is_undefined(value: float | None) -> None:
    assert number(value) == percent(value) == points(value) == "undefined"
    assert interval(Figure(value=value, n=1)) == "undefined"


def test_numbers_have_a_real_minus_and_no_negative_zero() -> None:
    assert [number(-1.255, 1), number(-0.001), number(0.3, 1, signed=True)] == ["−1.3", "0.00", "+0.3"]
    assert number(-0.0004, signed=True) == "0.00"


def test_shares_counts_lists_and_intervals_also_where_there_is_none() -> None:
    figure = Figure(value=0.676, low=0.54, high=0.804, n=60)
    assert percent(figure.value) == f"68{SPACE}%"
    assert percent_interval(figure) == f"95{SPACE}% interval 54–80{SPACE}%"
    assert interval(figure) == "0.54 to 0.80"
    assert interval_in_words(figure, 1) == f"95{SPACE}% interval 0.5 to 0.8"
    assert points(-0.126) == "−13"
    lone = Figure(value=0.5, n=2)
    assert interval(lone) == interval_in_words(lone) == percent_interval(lone) == "too few for an interval"
    assert interval(Figure(value=None, n=2, undefined="no conversations")) == "no conversations"
    assert [count(1, "rubric"), count(1200, "rubric")] == [f"1{SPACE}rubric", f"1,200{SPACE}rubrics"]
    assert [listed(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b, and c"]
