"""Bins of probabilities and their intervals, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pollex.web.charts import reliability
from pollex.web.reliability import MOST_BINS, bins_of, brier, wilson


def test_the_interval_of_a_half_of_ten() -> None:
    # z² = 3.8415; centre (0.5 + 0.19207) / 1.38415 = 0.5; half 1.96·√(0.025 + 0.0096036) / 1.38415 = 0.26341
    assert wilson(5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-5)


def test_the_interval_of_none_starts_at_zero_and_does_not_end_there() -> None:
    # centre and half are both z²/(2n) / (1 + z²/n) = 0.19207 / 1.38415
    assert wilson(0, 10) == pytest.approx((0.0, 0.27754), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((0.72246, 1.0), abs=1e-5)


def test_bins_hold_equal_numbers_in_the_order_of_probability() -> None:
    probabilities = np.linspace(0.99, 0.01, 40)
    positive = probabilities > 0.5
    bins = bins_of(probabilities, positive)
    assert [bin_.n for bin_ in bins] == [10, 10, 10, 10]
    assert [bin_.observed for bin_ in bins] == [0, 0, 1, 1]
    assert bins[0].predicted == pytest.approx(np.sort(probabilities)[:10].mean())


def test_equal_probabilities_stay_in_one_bin() -> None:
    bins = bins_of(np.array([0.2] * 25 + [0.9] * 5), np.array([True, False] * 15))
    assert [(bin_.n, round(bin_.predicted, 6)) for bin_ in bins] == [(25, 0.2), (5, 0.9)]


def test_a_bin_of_one_conversation_reads_as_one() -> None:
    drawn = str(reliability("title", bins_of(np.array([0.2] * 25 + [0.9]), np.array([True, False] * 13))))
    assert "<title>25\N{NO-BREAK SPACE}conversations: predicted" in drawn
    assert "<title>1\N{NO-BREAK SPACE}conversation: predicted" in drawn


def test_no_conversation_falls_out_and_there_are_not_too_many_bins() -> None:
    rng = np.random.default_rng(0)
    bins = bins_of(rng.random(1003), rng.random(1003) < 0.5)
    assert sum(bin_.n for bin_ in bins) == 1003
    assert len(bins) == MOST_BINS


def test_no_probabilities_have_no_bins() -> None:
    assert bins_of(np.empty(0), np.empty(0, bool)) == []


def test_the_mean_squared_error() -> None:
    # (0.2² + 0.5²) / 2
    assert brier(np.array([0.8, 0.5]), np.array([True, False])) == pytest.approx(0.145)
