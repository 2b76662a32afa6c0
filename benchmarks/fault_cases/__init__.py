"""Faults that were found once, each made anew: a module here is a theme, a function marked `case` is one fault."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

ROOT = Path(__file__).resolve().parents[2]
# cases are made of what the tests are made of
sys.path[:0] = [
    str(ROOT / "tests" / folder) for folder in ("", "endurance", "rooms/judge", "rooms/remedy")
]

# on few cores a second thread waits for longer than it works
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


# In place of a test of their own, or of the dearest part of it; the small form of `faults.py`
# leaves them out.
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
    "files_of_others": "flows/commands/test_forget_safely.py",
    "folder_of_the_user": "flows/commands/test_forget_safely.py",
    "forgetting_among_bombs": "flows/commands/test_forget_safely.py",
    "embedding_model": "flows/commands/test_learn_command.py",
    "places_of_a_proof": "rooms/remedy/unit/test_refused_before_pay.py",
    "lists_within_lists": "unit/formats/test_formats.py",
    "contexts": "unit/studio/test_forms.py",
    "a_huge_set": "unit/rubrics/test_size_of_a_set.py",
    "few_users": "rooms/remedy/unit/test_verdicts.py",
    "tokens_of_strangers": "unit/store/test_seal.py",
    "readings_of_strangers": "flows/services/test_readings.py",
    "watched_of_strangers": "flows/web/test_watched_folders.py",
    "tools_behind": "rooms/remedy/unit/test_acting.py",
    "links_beside": "rooms/remedy/unit/test_refused_before_pay.py",
    "results_of_strangers": "flows/web/test_results_of_commands.py",
    "changed_stores": "flows/web/test_changed_stores.py",
    "foreign_lines": "rooms/exchange/flows/test_transfer.py",
    "folders_of_runs": "flows/web/test_readers.py",
    "interrupted_imports": "unit/cli/test_interrupted_imports.py",
}
"""Cases that another test shows at every commit, by the names of their functions."""


@dataclass(frozen=True)
class Case:
    """One fault made anew.

    Attributes:
        entry: Its number in the list of faults, "3.2" for example.
        holds: What must hold, in a sentence.
        run: Makes it anew in an empty folder; returns the figure that was seen, and asserts what
            must hold.
    """

    entry: str
    holds: str
    run: Callable[[Path], str]


_CASES: list[Case] = []


def case(entry: str, holds: str) -> Callable[[Callable[[Path], str]], Callable[[Path], str]]:
    """Register a function as the case of an entry."""

    def register(run: Callable[[Path], str]) -> Callable[[Path], str]:
        _CASES.append(Case(entry, holds, run))
        return run

    return register


def cases() -> list[Case]:
    """Return all cases, by the numbers of their entries."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return sorted(_CASES, key=lambda one: tuple(int(part) for part in one.entry.split(".")))
