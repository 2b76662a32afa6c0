"""All acts. A module of this package that has a list `ACTS` is picked up by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from pollex.agents.embedded.events.acts.act import Act, Acts


def all_acts() -> tuple[Act, ...]:
    """Every act, in the order of the modules and their lists."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(act for module in modules for act in getattr(module, "ACTS", ()))


ACTS = Acts(all_acts())
