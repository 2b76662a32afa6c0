"""Worlds whose truth is known: one module a kind, each with what was planted, what is found, and bars.

A module here adds a function with `@world`; `evidence.py` runs all of them, or those named by
`--worlds`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What a world came to.

    Attributes:
        rows: What was planted or asked, and what was found, for people.
        figures: The same as JSON values.
        bars: What has to hold, and whether it does.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    bars: dict[str, bool] = field(default_factory=dict)


Measure = Callable[[bool], Outcome]
"""Takes whether the small form is wanted: seconds in place of minutes."""

WORLDS: dict[str, Measure] = {}


def world(name: str) -> Callable[[Measure], Measure]:
    """Put a world into the table, under the name that `--worlds` takes."""

    def add(measure: Measure) -> Measure:
        WORLDS[name] = measure
        return measure

    return add


for module in sorted(one.name for one in iter_modules(__path__)):
    import_module(f"{__name__}.{module}")
