"""smECE, the smooth calibration error, by relplot, without the drawing half of that package.

Imported whole, relplot takes seconds, for matplotlib, and matplotlib writes a cache of fonts into the home folder.

Source: Błasiok and Nakkiran 2023, arXiv:2309.12236.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PACKAGE = "relplot"


def smooth_error(probability: Any, hit: Any, *, return_width: bool = False) -> Any:
    """Compute smECE of probabilities `[judgment]` and hits `[judgment]`; with the kernel's width where asked for."""
    return _metrics().smECE(probability, hit, return_width=return_width)


@cache
def _metrics() -> ModuleType:
    """Import `relplot.metrics` without executing the package `relplot` itself."""
    if _PACKAGE in sys.modules:
        return import_module(f"{_PACKAGE}.metrics")
    spec = find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {_PACKAGE!r}")
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return import_module(f"{_PACKAGE}.metrics")  # scipy comes with it
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
