"""Faults that were found once are held off."""

from pathlib import Path

import pytest
from fault_cases import SHOWN, Case, cases


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.entry, marks=[pytest.mark.nightly] * (case.run.__name__ in SHOWN)
        )
        for case in cases()
    ],
)
def test_a_fault_that_was_found_once_is_held_off(case: Case, tmp_path: Path) -> None:
    assert case.run(tmp_path)
