"""Scales, ticks and shapes, worked by hand."""

from __future__ import annotations

import pytest

from pollex.web.plots import HEIGHT, Frame, Scale, nice_step, tick_label, ticks


def test_a_scale_maps_its_ends_and_its_middle() -> None:
    scale = Scale(-10, 10, 40, 350)
    assert [scale(-10), scale(0), scale(10)] == [40, 195, 350]


def test_a_scale_without_extent_stays_at_its_start() -> None:
    assert Scale(2, 2, 40, 350)(2) == 40


@pytest.mark.parametrize(
    ("span", "count", "step"),
    [(10, 5, 2), (10, 4, 2.5), (1, 4, 0.25), (7, 5, 2), (30, 6, 5), (0.3, 3, 0.1), (1e-7, 10, 1e-8), (9.5e6, 2, 5e6)],
)
def test_steps_are_round_and_make_at_most_so_many_parts(span: float, count: int, step: float) -> None:
    assert nice_step(span, count) == pytest.approx(step)


@pytest.mark.parametrize("span", [0.0, -1.0, float("nan"), float("inf")])
def test_a_span_that_is_none_has_a_step_of_one(span: float) -> None:
    assert nice_step(span, 5) == 1.0


def test_ticks_lie_within_the_ends() -> None:
    assert ticks(-14, 12, 6) == [-10, -5, 0, 5, 10]
    assert ticks(0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1]


def test_tick_labels_have_a_minus_sign() -> None:
    assert [tick_label(v) for v in (-2.5, 0.0, 1000.0)] == ["−2.5", "0", "1000"]


def test_a_band_without_an_end_reaches_to_the_edge() -> None:
    frame = Frame.over((0, 10), (0, 1))
    assert 'x="40" ' in frame.band(None, 5, "window")
    assert 'width="155" ' in frame.band(None, 5, "window")  # half of 350 − 40
    assert 'width="310" ' in frame.band(-99, None, "window")


def test_bars_below_zero_hang_from_it() -> None:
    frame = Frame.over((0, 10), (-2, 2))
    middle = (24 + HEIGHT - 36) / 2
    assert f'y="{middle:g}" ' in frame.bar(0, 1, 0, -1, "negative")
    assert f'y="{middle:g}" ' not in frame.bar(0, 1, 0, 1, "positive")
