from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from pollex.conversations.conversation import Conversation, Turn
from pollex.rubrics.learning.measured import UnseenScores, make_guaranteed_window_record
from pollex.rubrics.records import describe_both_window_sides, describe_guarantee
from pollex.selection.threshold import GuaranteedWindow, WindowSide, fit_guaranteed_window


def record(lower: WindowSide, upper: WindowSide, **held_out: Any) -> GuaranteedWindow:
    alone = {"blocks": (held_out.get("held_out", 0), held_out.get("outside", 0))}
    return GuaranteedWindow(
        lower=lower, upper=upper, precision=0.9, delta=0.1, n=207, **(alone | held_out)
    )


NONE = WindowSide(threshold=None, confident=0, wrong=0)
ONE = WindowSide(threshold=9, confident=57, wrong=1)


def test_sides_without_a_threshold_say_what_it_takes() -> None:
    words = describe_guarantee(record(NONE, replace(NONE, needed=1812)))
    assert "this would take about 1,800 labels instead of 207" in words
    assert "no threshold was right that often" in words
    assert "Held out" not in words
    words = describe_guarantee(record(replace(NONE, needed=208), replace(NONE, confident=3)))
    assert "negative that certainly: a few more labels may do" in words
    # 214 is told as 210, which is less than 211
    rounded = describe_guarantee(replace(record(NONE, replace(NONE, needed=214)), n=211))
    assert "positive that certainly: a few more labels may do" in rounded
    assert "positive that certainly: 3 scores lie beyond a threshold, too few to tell" in words
    assert describe_guarantee(record(NONE, NONE)).endswith(
        "fitted on: no score is that certain, because no threshold was right that often on these labels; how many it "
        "would take isn't known."
    )


def test_a_threshold_is_told_with_what_stands_behind_it() -> None:
    words = describe_guarantee(
        record(NONE, replace(ONE, threshold=13.27), held_out=205, outside=73, right=68)
    )
    assert "positive over 13.3 (57 conversations, 1 wrong)" in words
    assert "with probability 90 %" in words
    # Clopper–Pearson: 73/205 = 0.356 [0.291, 0.426], 68/73 = 0.932 [0.847, 0.977].
    assert "73 of 205 (36 %, 95 % interval 29 % to 43 %) outside this window" in words
    assert "68 of 73 (93 %, 95 % interval 85 % to 98 %) right" in words


def test_what_is_almost_all_or_almost_none_is_not_told_as_all_or_none() -> None:
    words = describe_guarantee(record(NONE, ONE, held_out=400, outside=399, right=1))
    # Clopper–Pearson: 399/400 = 0.9975 [0.98615, 0.99994], 1/399 = 0.00251 [0.00006, 0.01388].
    assert "399 of 400 (99.8 %, 95 % interval 99 % to 99.99 %) outside" in words
    assert "1 of 399 (0.3 %, 95 % interval 0.01 % to 1 %) right" in words
    assert "400 of 400 (100 %, 95 % interval 99 % to 100 %)" in describe_guarantee(
        record(NONE, ONE, held_out=400, outside=400)
    )
    all_inside = describe_guarantee(record(NONE, ONE, held_out=30))
    assert "0 of 30 (0 %, 95 % interval 0 % to 12 %) outside this window." in all_inside
    assert "right." not in all_inside
    assert "with probability 99.9 %" in describe_both_window_sides(
        replace(record(NONE, ONE), delta=0.001)
    )


def test_held_out_conversations_that_go_together_tell_no_more_than_one() -> None:
    words = describe_guarantee(record(ONE, ONE, held_out=40, outside=20, right=20, blocks=(10, 5)))
    assert "20 of 40 (50 %, 95 % interval 19 % to 81 %) outside" in words  # as 5 of 10
    assert "20 of 20 (100 %, 95 % interval 48 % to 100 %) right" in words  # as 5 of 5


@pytest.mark.parametrize("flipped", [False, True])
def test_the_record_counts_held_out_scores_outside_and_those_labeled_right(flipped: bool) -> None:
    # θ = 99.5 keeps both promises: 100 on either side, all right. Of four held-out scores all are
    # outside, one wrong.
    scores = np.arange(200.0)
    sign = -1.0 if flipped else 1.0
    found = (
        fit_guaranteed_window(sign * scores, scores > 99.5, 99.5)
        if not flipped
        else fit_guaranteed_window(sign * scores, scores <= 99.5, -99.5)
    )
    theta = sign * 99.5
    tested = np.array([150.0, 120, 50, 20])
    truth = np.array([True, False, False, False])
    talks = [
        Conversation(
            id=f"{n}", turns=(Turn(role="user", content=f"{n}"),), group=group, label=label
        )
        for n, (group, label) in enumerate(
            zip("abcc", np.where(truth, "positive", "negative").tolist(), strict=True)
        )
    ]
    outside = found.window.confident(sign * tested)
    nothing = np.zeros(4)
    unseen = UnseenScores(
        talks, tested, np.full(4, 99.5), outside, outside, nothing, nothing > 0, nothing > 0
    )
    kept = make_guaranteed_window_record(found, unseen)
    assert kept is not None
    assert (kept.held_out, kept.outside, kept.right, kept.blocks) == (4, 4, 3, (3, 3))
    assert (kept.window.lower, kept.window.upper) == (theta, theta)
    assert TypeAdapter(GuaranteedWindow).validate_python(asdict(kept)) == kept
