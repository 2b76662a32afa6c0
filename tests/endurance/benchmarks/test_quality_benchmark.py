"""The numbers that the quality benchmark adds of its own, by hand."""

import math

import numpy as np
import pytest
from counts import count_scores, counted
from rubicon import resampled_interval
from small_logs import conversation, small_log

from pollex.conversations.conversation import Label


def test_the_interval_by_hand() -> None:
    # Mean 0.2, s² = 0.01, k = 3, half and half: variance (1/3 + 1)·0.01; t(0.975, 2) = 4.302653.
    half = 4.302653 * math.sqrt(4 / 3 * 0.01)
    assert resampled_interval(np.array([0.1, 0.2, 0.3]), 1.0) == pytest.approx(
        (0.2 - half, 0.2 + half), abs=1e-6
    )


def test_the_thirteen_counts_by_hand() -> None:
    talk = conversation(
        ("u", "Can you help me?"),
        ("a", "Sorry, I can't. Which one?"),
        ("u", "can you help ME"),
        ("a", "Done"),
        ("u", "Great, thanks"),
    )
    assert counted(talk) == [5, pytest.approx(10 / 3), 3.0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0]


def test_the_counts_tell_the_classes_of_a_plain_log_apart() -> None:
    log = small_log()
    positive = np.array([c.label is Label.POSITIVE for c in log])
    scores = count_scores(log[:20], positive[:20], log[20:])
    assert scores[positive[20:]].min() > scores[~positive[20:]].max()
