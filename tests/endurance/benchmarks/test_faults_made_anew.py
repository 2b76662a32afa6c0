"""Faults that were found once are held off."""

from pathlib import Path

import pytest
from fault_cases import Case, cases

SHOWN = {
    "reworded": "flows/commands/test_rubrics_command.py",
    "other_languages_are_told": "unit/agents_embedded/events/test_languages.py",
    "four_processes": "endurance/end_to_end/test_two_processes.py",
    "a_huge_turn": "unit/formats/test_bounds_of_reading.py",
    "hostile_files": "unit/formats/test_bounds_of_reading.py",
    "two_bad_prompts": "endurance/gateway/test_gateway_faults.py",
    "final": "endurance/gateway/test_gateway_faults.py",
    "short_of_something": "endurance/store/test_ends.py",
    "other_host": "flows/api/test_scores_over_http.py",
    "locked_and_packed": "endurance/house/test_wheel.py",
}
"""Those that another test shows at every commit, or the dearest part of them."""


@pytest.mark.parametrize(
    "one",
    [pytest.param(one, id=one.entry, marks=[pytest.mark.nightly] * (one.run.__name__ in SHOWN)) for one in cases()],
)
def test_a_fault_that_was_found_once_is_held_off(one: Case, tmp_path: Path) -> None:
    assert one.run(tmp_path)
