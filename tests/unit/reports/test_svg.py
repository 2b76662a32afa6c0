"""Drawings and numbers in words, worked by hand."""

import pytest
from markupsafe import Markup

from pollex.measures.intervals import Figure
from pollex.reports.charts import draw_figure, draw_figures
from pollex.reports.numbers import (
    NO_BREAK_SPACE,
    format_grouped_count,
    format_interval,
    format_interval_in_words,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
    join_with_and,
)
from pollex.reports.svg import (
    CHART_PANEL_HEIGHT_PIXELS,
    Axis,
    ChartFrame,
    choose_round_step,
    choose_ticks,
    escape_markup,
    format_tick,
    join_markup,
    make_element,
)


def test_text_is_escaped_and_markup_is_not() -> None:
    assert make_element("p", "a < b", None, ["c", Markup("<b>d</b>")]) == "<p>a &lt; bc<b>d</b></p>"
    assert join_markup(["<", ("a", None, [1])]) == "&lt;a1"
    made = make_element("text", class_='"><b>', text_anchor="it's", name=None, x=1.50)
    assert made == '<text class="&quot;&gt;&lt;b&gt;" text-anchor="it&#x27;s" x="1.5"></text>'
    odd = {"a//b": "a&#47;&#47;b", "a///b": "a&#47;&#47;/b", "\x1b": "\\x1b"}
    assert {text: escape_markup(text) for text in odd} == odd, (
        "two slashes are no address, and controls can be seen"
    )


def test_ticks_lie_within_the_ends_at_round_steps_and_their_labels_have_a_minus_sign() -> None:
    steps = {
        (10, 5): 2,
        (10, 4): 2.5,
        (1, 4): 0.25,
        (7, 5): 2,
        (30, 6): 5,
        (0.3, 3): 0.1,
        (1e-7, 10): 1e-8,
    }
    steps |= {(9.5e6, 2): 5e6} | {
        (span, 5): 1.0 for span in (0.0, -1.0, float("nan"), float("inf"))
    }
    assert [choose_round_step(*asked) for asked in steps] == pytest.approx(list(steps.values()))
    assert choose_ticks(-14, 12, 6) == [-10, -5, 0, 5, 10]
    assert choose_ticks(0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert [format_tick(v) for v in (-2.5, 0.0, 1000.0)] == ["−2.5", "0", "1000"]
    assert [Axis(-10, 10, 40, 350)(value) for value in (-10, 0, 10)] == [40, 195, 350]
    assert Axis(2, 2, 40, 350)(2) == 40


def test_a_band_without_an_end_reaches_to_the_edge_and_bars_below_zero_hang_from_it() -> None:
    frame = ChartFrame.over((0, 10), (0, 1))
    assert 'x="40" ' in frame.band(None, 5, "window")
    assert 'width="155" ' in frame.band(None, 5, "window")  # half of 350 − 40
    assert 'width="310" ' in frame.band(-99, None, "window")
    frame = ChartFrame.over((0, 10), (-2, 2))
    middle = (24 + CHART_PANEL_HEIGHT_PIXELS - 36) / 2
    assert f'y="{middle:g}" ' in frame.bar(0, 1, 0, -1, "negative")
    assert f'y="{middle:g}" ' not in frame.bar(0, 1, 0, 1, "positive")


def test_a_figure_without_an_interval_has_a_mark_alone_and_an_undefined_one_only_words() -> None:
    lone = Figure(0.5, None, None, 9, 3)
    none = Figure(None, n=9, undefined="no texts", units=3)
    assert (
        "<circle" in draw_figure("it", lone, Axis(0, 1, 0, 9)),
        "whisker" in draw_figure("it", lone, Axis(0, 1, 0, 9)),
    ) == (
        True,
        False,
    )
    said = draw_figures("AUC", [("training", none), ("held out", None)])
    assert "<title>AUC: training undefined</title>" in said
    assert "<circle" not in said


@pytest.mark.parametrize("value", [None, float("nan"), float("-inf")])
def test_what_is_no_number_is_undefined(value: float | None) -> None:
    assert format_number(value) == format_percent(value) == format_points(value) == "undefined"
    assert format_interval(Figure(value=value, n=1)) == "undefined"


def test_numbers_have_a_real_minus_and_no_negative_zero() -> None:
    assert [
        format_number(-1.255, 1),
        format_number(-0.001),
        format_number(0.3, 1, signed=True),
    ] == [
        "−1.3",
        "0.00",
        "+0.3",
    ]
    assert format_number(-0.0004, signed=True) == "0.00"


def test_shares_counts_lists_and_intervals_also_where_there_is_none() -> None:
    figure = Figure(value=0.676, low=0.54, high=0.804, n=60)
    assert format_percent(figure.value) == f"68{NO_BREAK_SPACE}%"
    assert format_percent_interval(figure) == f"95{NO_BREAK_SPACE}% interval 54–80{NO_BREAK_SPACE}%"
    assert format_interval(figure) == "0.54 to 0.80"
    assert format_interval_in_words(figure, 1) == f"95{NO_BREAK_SPACE}% interval 0.5 to 0.8"
    assert format_points(-0.126) == "−13"
    lone = Figure(value=0.5, n=2)
    assert (
        format_interval(lone)
        == format_interval_in_words(lone)
        == format_percent_interval(lone)
        == "too few for an interval"
    )
    assert (
        format_interval(Figure(value=None, n=2, undefined="no conversations")) == "no conversations"
    )
    assert [format_grouped_count(1, "rubric"), format_grouped_count(1200, "rubric")] == [
        f"1{NO_BREAK_SPACE}rubric",
        f"1,200{NO_BREAK_SPACE}rubrics",
    ]
    assert [join_with_and(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b, and c"]
