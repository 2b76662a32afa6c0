"""Rubric sets and scores in the forms of other tools, one module each.

A module with `TARGET` is found automatically.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from pollex.formats.peers.target import Target

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET
    for name in sorted(found.name for found in pkgutil.iter_modules(__path__))
    if hasattr(module := import_module(f"{__name__}.{name}"), "TARGET")
}
