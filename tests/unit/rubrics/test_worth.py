"""What a rubric is worth, told with its interval."""

from __future__ import annotations

import numpy as np
import pytest

from pollex.rubrics.worth import share_of, worth_of


def test_the_worth_of_a_rubric_is_told_with_its_interval() -> None:
    held = np.array([True] * 10 + [False] * 10)
    up = np.array([True] * 9 + [False] + [True] * 5 + [False] * 5)
    found = worth_of(held, up)
    assert (found.holds.value, found.down_with.value, found.down_without.value) == (0.5, 0.1, 0.5)
    assert found.down_with.n == 10
    assert found.down_with.low == pytest.approx(0.0179, abs=1e-4)  # Wilson's interval of 1 in 10, by hand
    assert found.down_with.high == pytest.approx(0.4042, abs=1e-4)


def test_a_share_of_nothing_has_no_value_and_says_why() -> None:
    assert share_of(0, 0).value is None
    assert share_of(0, 0).undefined
