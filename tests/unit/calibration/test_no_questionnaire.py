"""Questions and questionnaires that are none."""

from typing import Any

import pytest

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

CLEAR = Scale("clear", (1.0, 2.0))


@pytest.mark.parametrize(
    ("values", "ordinal", "message"),
    [
        ((1.0,), True, "has 1 options"),
        ((), False, "has 0 options"),
        ((2.0, 1.0), True, "don't ascend"),
        ((1.0, float("nan")), True, "can't have the value nan"),
        ((1.0, float("inf")), True, "can't have the value inf"),
        ((-1e300, 1.0), True, r"can't have the value -1e\+300 → .*none beyond ±1e"),
        ((1.0, 2.0, 1.0), False, "can't have the value 1.0 → .*of its own"),
        (("bad", "good"), False, "can't have the value 'bad'"),
    ],
)
def test_what_is_no_question_is_refused_by_its_name(values: Any, ordinal: bool, message: str) -> None:
    with pytest.raises(WrongUse, match=f"'clear'.* {message}"):
        Scale("clear", values, ordinal)


@pytest.mark.parametrize(
    ("scales", "main", "message"),
    [((CLEAR, CLEAR), "clear", "two questions are called 'clear'"), ((CLEAR,), "overall", "none of clear")],
)
def test_what_is_no_questionnaire_is_refused(scales: tuple[Scale, ...], main: str, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        Questionnaire(scales, main)


def test_options_of_classes_need_no_order() -> None:
    assert Scale("length", (2.0, 0.0, 1.0), ordinal=False).values == (2.0, 0.0, 1.0)
