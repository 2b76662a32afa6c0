"""People's answers as they come, and what is none of them."""

from typing import Any

import numpy as np
import pytest

from pollex.calibration.judgments import convert_judge_names_to_indices, convert_judgments_to_arrays
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

QUESTIONS = Questionnaire(
    tuple(Scale(name, (1.0, 2.0, 3.0, 4.0)) for name in ("Q0", "Q1", "Q2", "Q3")), "Q0"
)
TUPLES: list[tuple[Any, ...]] = [(0, "Q0", "ann", 4), (1, "Q0", None, 2), (1, "Q3", "bob", 1)]
NOT_ALLOWED = "answers that their question doesn't allow: 2 of"


class Gap:
    """As pandas' NA is: what comes of comparing it is neither true nor false."""

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def told(y: Any, judges: Any = None) -> list[tuple[int, int, str | None, int]]:
    found = convert_judgments_to_arrays(y, judges, QUESTIONS, rows=3)
    columns = (found.row, found.question, found.names(), found.answer)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (
            (1, "Q0", 3),
            r"judgment 3, \(1, 'Q0', 3\): judgments that are no \(row, question, judge, answer\): 2 of",
        ),
        (
            (1.5, "Q0", "ann", 3),
            r"judgment 3, .*1\.5.*: judgments of rows that are no whole numbers: 2 of",
        ),
        (("text 7", "Q0", "ann", 3), "judgment 3, .*text 7.*: judgments of rows"),
        ((float("nan"), "Q0", "ann", 3), "judgments of rows"),
        ((1, "Q9", "ann", 3), "'Q9': judgments of unknown questions: 2 of"),
        *(
            ((1, "Q0", "ann", odd), f"row 1, question 'Q0': {odd}: {NOT_ALLOWED}")
            for odd in (9, "good")
        ),
        ((1, "Q0", "ann", None), f"row 1, question 'Q0': nan: {NOT_ALLOWED}"),
        ((3, "Q0", "ann", 3), "row 3: judgments of rows that X, with 3, doesn't have: 2 of"),
        ((-1, "Q0", "ann", 3), "row -1: judgments of rows"),
    ],
)
def test_what_is_no_judgment_is_refused_with_its_count_and_the_first(
    odd: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        told([*TUPLES, odd, odd])


@pytest.mark.parametrize(
    ("y", "judges", "message"),
    [
        ([4, 2], None, "answers for 2 rows, X has 3"),
        ([4, 2, 1, 1], None, "answers for 4 rows, X has 3"),
        ([4, "good", "good"], None, f"row 1, question 'Q0': good: {NOT_ALLOWED}"),
        ([4, 2, 1], ["ann", "bob"], "2 judges for 3 rows"),
        ([4, 2, 1], "ann", "one name, 'ann', for 3 rows"),
        (TUPLES, ["ann", "bob", "cy"], "judges beside judgments that name their own"),
        (
            [[4, 2], [1, 1], [1, 1]],
            None,
            r"judgment 0, \[4, 2\]: judgments that are no \(row, .*\): 3",
        ),
    ],
)
def test_answers_and_judges_that_are_not_one_a_row_are_refused(
    y: Any, judges: Any, message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        told(y, judges)


def test_any_collection_of_judgments_will_do_also_an_empty_one() -> None:
    expected = [(0, 0, "ann", 3), (1, 0, None, 1), (1, 3, "bob", 0)]
    arrays = np.array(TUPLES, dtype=object)
    for given in (
        TUPLES,
        tuple(TUPLES),
        iter(TUPLES),
        [*map(list, TUPLES)],
        arrays,
        dict(enumerate(TUPLES)).values(),
    ):
        assert told(given) == expected
    assert sorted(told(set(TUPLES)), key=str) == sorted(expected, key=str)
    assert told([]) == []


@pytest.mark.parametrize(
    "nobody", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), Gap(), ""]
)
def test_a_judge_who_is_missing_is_nobody_and_not_called_nan(nobody: Any) -> None:
    assert told([4, 2, 1], ["ann", nobody, nobody])[1:] == [(1, 0, None, 1), (2, 0, None, 0)]
    assert told([(0, "Q0", nobody, 1)]) == [(0, 0, None, 0)]


def test_a_number_names_the_same_judge_whether_a_gap_made_its_column_one_of_floats_or_not() -> None:
    assert [name for _, _, name, _ in told([4, 2, 1], np.array([7, np.nan, 12]))] == [
        "7",
        None,
        "12",
    ]
    assert convert_judge_names_to_indices(
        [7, np.float64(12), np.int64(7), "12", 7.5], ["12", "7"]
    ).tolist() == [
        1,
        0,
        1,
        0,
        -1,
    ]


def test_nobody_and_judges_who_are_left_out_are_nobody_under_other_codes() -> None:
    again = convert_judgments_to_arrays([*TUPLES, (2, "Q0", "cy", 3)], None, QUESTIONS).coded(
        ["zoe", "bob", "ann"]
    )
    assert again.judge.tolist() == [2, -1, 1, -1]
    assert again.names().tolist() == ["ann", None, "bob", None]
