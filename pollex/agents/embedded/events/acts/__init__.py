"""All acts, collected from the `ACTS` lists of this package's modules."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from pollex.agents.embedded.events.acts.act import Act, Acts


def all_acts() -> tuple[Act, ...]:
    """List every act, in the order of the modules and their lists."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(act for module in modules for act in getattr(module, "ACTS", ()))


ACTS = Acts(all_acts())
