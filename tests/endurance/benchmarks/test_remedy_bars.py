"""The statistics of `pollex remedy` hold in a world whose truth is planted."""

import pytest
from remedy import BARS, main

LONG = {"1", "14", "19"}


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=[pytest.mark.nightly] * (number in LONG)) for number in sorted(BARS, key=int)],
)
def test_a_bar_is_reached(number: str) -> None:
    assert main([number]) == 0
