"""Columns, filters and orders of a list against plain loops over the same rows."""

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pollex.web.calibrated import measure_share_outside
from pollex.web.filters import combine_masks, count_choices, make_histogram
from pollex.web.lens import RunColumns
from pollex.web.listing import ListedConversation, ListForm, make_masks

NUMBER = st.one_of(st.just(math.nan), st.floats(-50, 50))
SHARE = st.one_of(st.just(math.nan), st.floats(0, 1))
CODE = st.sampled_from([-1, 0, 1])
SIDE = st.sampled_from(["train", "test", ""])
ROW = st.tuples(CODE, CODE, NUMBER, SHARE, st.text(max_size=5), SIDE)


def lens(rows: list[tuple[Any, ...]]) -> RunColumns:
    def ints(place: int) -> Any:
        return np.array([row[place] for row in rows], dtype=np.int64)

    n = len(rows)
    return RunColumns(
        version="v",
        ids=[f"c{i}" for i in range(n)],
        hashes=[f"h{i}" for i in range(n)],
        openings=[row[4] for row in rows],
        sides=[row[5] for row in rows],
        groups=[None] * n,
        turns=np.ones(n, dtype=np.int64),
        label=ints(0),
        predicted=ints(1),
        certain=ints(1),
        netsat=np.array([row[2] for row in rows], dtype=np.float64),
        probability=np.array([row[3] for row in rows], dtype=np.float64),
        failed=np.zeros(n, dtype=np.int64),
    )


@given(
    rows=st.lists(ROW, max_size=30),
    low=st.floats(-50, 50),
    words=st.text(max_size=2),
    thumb=st.sampled_from([1, 0, -1]),
)
@settings(deadline=None)
def test_filters_leave_what_a_loop_leaves(
    rows: list[tuple[Any, ...]], low: float, words: str, thumb: int
) -> None:
    seen = lens(rows)
    form = ListForm.model_validate(
        {"thumb": {1: "up", 0: "down", -1: "none"}[thumb], "netsat_from": low, "q": words}
    )
    left = combine_masks(make_masks(form, seen), len(seen))
    by_hand = [
        row[0] == thumb
        and row[2] >= low
        and (not words or words.lower() in f"c{i}\n{row[4]}".lower())
        for i, row in enumerate(rows)
    ]
    assert left.tolist() == by_hand


@given(rows=st.lists(ROW, max_size=30), down=st.booleans())
def test_orders_are_stable_and_what_has_no_figure_comes_last(
    rows: list[tuple[Any, ...]], down: bool
) -> None:
    order = lens(rows).order("netsat", down=down).tolist()
    sign = -1 if down else 1
    assert order == sorted(
        range(len(rows)),
        key=lambda i: (
            math.isnan(rows[i][2]),
            0 if math.isnan(rows[i][2]) else sign * rows[i][2],
            i,
        ),
    )


@given(rows=st.lists(ROW, min_size=1, max_size=30))
def test_a_facet_counts_what_each_choice_would_leave(rows: list[tuple[Any, ...]]) -> None:
    seen = lens(rows)
    masks = make_masks(ListForm(predicted="up"), seen)
    for option in count_choices(seen, masks).get("thumb", []):
        code = {"up": 1, "down": 0, "none": -1}[option.value]
        assert option.count == sum(row[0] == code and row[1] == 1 for row in rows)


def test_surprise_is_minus_log_of_the_thumb_that_came() -> None:
    seen = lens([(1, 1, 0.0, 0.8, "", ""), (0, 1, 0.0, 0.8, "", ""), (-1, 1, 0.0, 0.8, "", "")])
    assert np.allclose(seen.surprise[:2], [-math.log(0.8), -math.log(0.2)])
    assert math.isnan(seen.surprise[2])
    assert seen.differs.tolist() == [0, 1, -1]


def test_thumb_and_verdict_differ_by_the_verdict_that_rows_show() -> None:
    # NetSAT says up, the probability says bad, 89 % sure, as the thumb does
    agreed = (0, 1, 2.0, 0.11, "", "")
    without_probability = (0, 1, 2.0, math.nan, "", "")
    without_score = (0, -1, math.nan, math.nan, "", "")
    seen = lens([agreed, without_probability, without_score])
    assert seen.differs.tolist() == [0, 1, -1]
    shown = [ListedConversation.of(seen, row, row).good for row in range(3)]
    assert shown == [False, True, None]


def test_a_histogram_counts_every_figure_once() -> None:
    values = np.array([0.0, 1.0, 1.0, np.nan, 10.0])
    counted = make_histogram(values, np.array([True, True, False, True, True]))
    assert counted is not None
    assert (counted.all.sum(), counted.found.sum()) == (4, 3)
    assert make_histogram(np.array([1.0, 1.0]), np.array([True, True])) is None


def test_values_beyond_all_earlier_ones_are_counted_and_missing_ones_are_not() -> None:
    before = np.array([-3.0, 0.0, 5.0, np.nan])
    after = np.array([-3.0, 5.0, 5.1, -4.0, 1.0, np.nan])
    found = measure_share_outside(before, after)
    assert (found.value, found.n) == (0.4, 5)
    assert found.low is not None
    assert found.low < 0.4
