"""All patterns, collected from this package's modules that have `PATTERNS` and `find`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing, Pattern

MODULES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
PATTERNS: dict[str, Pattern] = {one.name: one for module in MODULES for one in getattr(module, "PATTERNS", ())}
FINDERS: list[Callable[[Exchange], Iterator[Firing]]] = [
    module.find for module in MODULES if hasattr(module, "PATTERNS")
]


def firings(exchange: Exchange) -> Iterator[Firing]:
    """Yield the firings of one exchange."""
    for find in FINDERS:
        yield from find(exchange)
