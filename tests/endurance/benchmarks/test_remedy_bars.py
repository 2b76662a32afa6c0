"""The statistics of `pollex remedy` hold in a world whose truth is planted."""

import pytest
from remedy import BARS, main


@pytest.mark.parametrize("number", sorted(BARS.keys() - {"1", "14", "19"}, key=int))
def test_a_bar_is_reached(number: str) -> None:
    assert main([number]) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("number", ["1", "14", "19"])
def test_a_long_bar_is_reached(number: str) -> None:
    assert main([number]) == 0
