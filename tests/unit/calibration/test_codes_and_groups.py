"""Arrays of codes that stand for nothing are refused with a count and the first of them."""

import numpy as np
import pytest

from pollex.calibration.judgments import Judgments, judgments
from pollex.calibration.models.baselines import Constant
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

QUESTIONS = Questionnaire((Scale("clear", (1.0, 2.0)), Scale("overall", (1.0, 2.0, 3.0))), "overall")
GOOD: dict[str, list[int]] = {"row": [0, 1, 1], "question": [1, 1, 0], "judge": [0, -1, 0], "answer": [2, 0, 1]}


def coded(**changed: list[int]) -> Judgments:
    arrays = {name: np.array(values, dtype=np.int64) for name, values in (GOOD | changed).items()}
    return Judgments(**arrays, judges=("ann",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"answer": [2, 3, 2]}, "judgment 1: judgments with places of options that there are not: 2 of"),
        ({"answer": [-1, 0, 1]}, "judgment 0: judgments with places of options that there are not: 1 of"),
        ({"question": [1, 2, -1]}, "judgment 1: judgments with places of questions that there are not: 2 of"),
        ({"judge": [0, -2, 1]}, "judgment 1: judgments with places of judges that there are not: 2 of"),
        ({"judge": [0, 0]}, r"arrays of \[2, 3\] entries"),
        ({"row": [0, 2, 1]}, "judgments of rows that X, with 2, doesn't have: 1 of"),
    ],
)
def test_a_place_that_stands_for_nothing_is_refused(changed: dict[str, list[int]], message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        judgments(coded(**changed), questions=QUESTIONS, rows=2)


def test_places_that_stand_for_something_are_taken_as_they_are() -> None:
    found = judgments(coded(), questions=QUESTIONS, rows=2)
    assert found.names().tolist() == ["ann", None, "ann"]


def test_groups_that_are_not_one_a_row_are_refused() -> None:
    X = np.full((2, 5), 0.2)
    with pytest.raises(WrongUse, match="3 groups for 2 rows"):
        Constant().fit(X, coded(), questions=QUESTIONS, groups=["a", "b", "c"])
