"""Bins of probabilities and their intervals, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pollex.measures.reliability import wilson
from pollex.web.charts import reliability
from pollex.web.reliability import MOST_BINS, bins_of, brier


def test_bins_hold_equal_numbers_in_the_order_of_probability() -> None:
    probabilities = np.linspace(0.99, 0.01, 40)
    positive = probabilities > 0.5
    bins = bins_of(probabilities, positive, np.arange(40))
    assert [bin_.n for bin_ in bins] == [10, 10, 10, 10]
    assert [bin_.observed for bin_ in bins] == [0, 0, 1, 1]
    assert bins[0].predicted == pytest.approx(np.sort(probabilities)[:10].mean())


def test_equal_probabilities_stay_in_one_bin() -> None:
    bins = bins_of(np.array([0.2] * 25 + [0.9] * 5), np.array([True, False] * 15), np.arange(30))
    assert [(bin_.n, round(bin_.predicted, 6)) for bin_ in bins] == [(25, 0.2), (5, 0.9)]


def test_a_bin_of_one_conversation_reads_as_one() -> None:
    bins = bins_of(np.array([0.2] * 25 + [0.9]), np.array([True, False] * 13), np.arange(26))
    drawn = str(reliability("title", bins))
    assert "<title>25\N{NO-BREAK SPACE}conversations: predicted" in drawn
    assert "<title>1\N{NO-BREAK SPACE}conversation: predicted" in drawn


def test_conversations_that_go_together_tell_no_more_than_one() -> None:
    (four,) = bins_of(np.full(40, 0.5), np.arange(40) // 4 % 2 == 0, np.arange(40) // 4)
    assert (four.n, four.observed) == (40, 0.5)
    assert (four.low, four.high) == pytest.approx(wilson(0.5, 10))


def test_no_conversation_falls_out_and_there_are_not_too_many_bins() -> None:
    rng = np.random.default_rng(0)
    bins = bins_of(rng.random(1003), rng.random(1003) < 0.5, np.arange(1003))
    assert sum(bin_.n for bin_ in bins) == 1003
    assert len(bins) == MOST_BINS


def test_no_probabilities_have_no_bins() -> None:
    assert bins_of(np.empty(0), np.empty(0, bool), np.empty(0, int)) == []


def test_the_mean_squared_error() -> None:
    # (0.2² + 0.5²) / 2
    assert brier(np.array([0.8, 0.5]), np.array([True, False])) == pytest.approx(0.145)
