"""All patterns, collected from this package's modules that have `PATTERNS` and `find`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing, Pattern

Finder = Callable[[Exchange], Iterator[Firing]]
MODULES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
PATTERNS: dict[str, Pattern] = {one.name: one for module in MODULES for one in getattr(module, "PATTERNS", ())}
FINDERS: list[tuple[frozenset[str], Finder]] = [
    (frozenset(one.name for one in module.PATTERNS), module.find) for module in MODULES if hasattr(module, "PATTERNS")
]
"""What finds which patterns."""


@lru_cache(maxsize=64)
def finders_of(patterns: frozenset[str] | None) -> tuple[Finder, ...]:
    """Return what finds some patterns; for None what finds any."""
    return tuple(find for found, find in FINDERS if patterns is None or not found.isdisjoint(patterns))
