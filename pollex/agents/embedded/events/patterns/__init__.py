"""All patterns: the rows of `patterns.toml`, each found by the `find` of the module that its group is named after."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing, Pattern
from pollex.agents.embedded.rules import rows

Finder = Callable[[Exchange], Iterator[Firing]]
_ROWS = [(group, Pattern(name, **row)) for group, name, row in rows(Path(__file__).parents[1] / "patterns.toml")]
PATTERNS = {pattern.name: pattern for _, pattern in _ROWS}
FINDERS: dict[str, Finder] = {group: import_module(f"{__name__}.{group}").find for group, _ in _ROWS}


@lru_cache(maxsize=64)
def finders_of(patterns: frozenset[str] | None) -> tuple[Finder, ...]:
    """Return what finds some patterns; for None what finds any."""
    wanted = {group for group, pattern in _ROWS if patterns is None or pattern.name in patterns}
    return tuple(find for group, find in FINDERS.items() if group in wanted)
