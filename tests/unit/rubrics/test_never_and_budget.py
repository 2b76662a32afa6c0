"""What "never came up" counts by what labels show, and one budget for a set's rubrics, whoever wrote them."""

import numpy as np
import pytest

from pollex.errors import WrongUse
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE
from pollex.rubrics.learning.crossfit import learn_never_came_up_value_of_side
from pollex.rubrics.learning.settings import (
    DEFAULT_HELD_OUT_SHARE,
    DEFAULT_MAX_RUBRICS,
    MIN_LABELS_OF_SMALLER_CLASS_TO_HOLD_OUT,
    LearnSettings,
    resolve_test_fraction,
)

UP = np.arange(200) < 100


def value_where_never_means(good: bool, answers: int, sign: float) -> float:
    """Return the value for one rubric that was true of half of the bad ones, and never came up in some others."""
    never = np.zeros((200, 1), dtype=bool)
    signed = np.full((200, 1), sign * 5.0)
    signed[100:150] = sign * 10.0
    side = np.flatnonzero(UP if good else ~UP)
    never[side[-answers:], 0] = True
    return learn_never_came_up_value_of_side(signed, ~never, never, UP)


def test_no_occasion_for_what_goes_wrong_is_good_news_where_labels_say_so_and_few_answers_are_believed_less() -> (
    None
):
    many, few = (value_where_never_means(True, answers, -1.0) for answers in (90, 10))
    assert 0 <= many < few < MIDDLE_OPTION_VALUE
    assert value_where_never_means(True, 90, -1.0) == pytest.approx(MIDDLE_OPTION_VALUE * 30 / 120)


def test_without_both_thumbs_never_came_up_is_neutral() -> None:
    never = np.ones((4, 1), dtype=bool)
    assert (
        learn_never_came_up_value_of_side(np.zeros((4, 1)), ~never, never, np.ones(4, dtype=bool))
        == MIDDLE_OPTION_VALUE
    )


def test_a_budget_is_of_each_side_and_without_one_there_are_fifteen_in_all() -> None:
    assert (LearnSettings().limits, LearnSettings().most) == (
        (DEFAULT_MAX_RUBRICS, DEFAULT_MAX_RUBRICS),
        DEFAULT_MAX_RUBRICS,
    )
    assert (LearnSettings(budget=(3, 3)).limits, LearnSettings(budget=(3, 3)).most) == ((3, 3), 6)
    assert sum(LearnSettings(method="spur").limits) <= DEFAULT_MAX_RUBRICS
    with pytest.raises(WrongUse, match="a budget of 0"):
        LearnSettings(budget=(0, 0))


def test_half_of_the_labels_are_held_out_only_where_there_are_many_or_somebody_says_so() -> None:
    assert resolve_test_fraction(None, smaller=MIN_LABELS_OF_SMALLER_CLASS_TO_HOLD_OUT - 1) == 0.0
    assert (
        resolve_test_fraction(None, smaller=MIN_LABELS_OF_SMALLER_CLASS_TO_HOLD_OUT)
        == DEFAULT_HELD_OUT_SHARE
    )
    assert resolve_test_fraction(0.3, smaller=10) == 0.3
