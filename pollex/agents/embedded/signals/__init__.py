"""All signals, collected from the `SIGNALS` lists of this package's modules."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from pollex.agents.embedded.signals.signal import Signal


def all_signals() -> dict[str, Signal]:
    """Collect every signal by its name, in the order of the modules and their lists."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return {signal.name: signal for module in modules for signal in getattr(module, "SIGNALS", [])}
