"""What a rubric is worth, told with its interval."""

import numpy as np
import pytest

from pollex.rubrics.records import Worth
from pollex.rubrics.worth import difference, doubt, share_of, worth_of


def test_the_worth_of_a_rubric_is_told_with_its_interval() -> None:
    held = np.array([True] * 10 + [False] * 10)
    up = np.array([True] * 9 + [False] + [True] * 5 + [False] * 5)
    found = worth_of(held, up)
    assert (found.holds.value, found.down_with.value, found.down_without.value) == (0.5, 0.1, 0.5)
    assert found.down_with.n == 10
    assert found.down_with.low == pytest.approx(0.0179, abs=1e-4)  # Wilson's interval of 1 in 10, by hand
    assert found.down_with.high == pytest.approx(0.4042, abs=1e-4)
    assert share_of(0, 0).value is None
    assert share_of(0, 0).undefined


def test_the_interval_of_a_difference_agrees_with_newcombe() -> None:
    there, elsewhere = share_of(56, 70), share_of(48, 80)  # his table II, example a
    found = difference(Worth(holds=share_of(70, 150), down_with=there, down_without=elsewhere))
    assert found == pytest.approx((0.0524, 0.3339), abs=1e-4)


@pytest.mark.parametrize(
    ("with_", "without", "said"),
    [
        ((12, 15), (20, 100), ""),
        ((6, 12), (44, 100), "too few to tell: it holds in 12 of 112"),
        ((41, 100), (38, 100), "no clear difference: it may be chance"),
        ((2, 60), (38, 100), "not confirmed: it went the other way in the 60 where it holds"),
        ((1, 3), (38, 100), "not confirmed: it went the other way in the 3 where it holds, which are too few to tell"),
        ((0, 0), (38, 100), ""),
    ],
)
def test_what_stands_against_a_worth_is_said_in_plain_words(
    with_: tuple[int, int], without: tuple[int, int], said: str
) -> None:
    worth = Worth(
        holds=share_of(with_[1], with_[1] + without[1]), down_with=share_of(*with_), down_without=share_of(*without)
    )
    assert doubt(worth, "dsat").startswith(said)
    assert bool(doubt(worth, "dsat")) == bool(said)
