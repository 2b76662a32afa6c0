"""Faults that were found once are held off."""

from pathlib import Path

import pytest
from fault_cases import Case, cases


@pytest.mark.parametrize("one", [pytest.param(one, id=one.entry) for one in cases()])
def test_a_fault_that_was_found_once_is_held_off(one: Case, tmp_path: Path) -> None:
    assert one.run(tmp_path)
