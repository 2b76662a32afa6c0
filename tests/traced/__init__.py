"""Small exports of tracing tools, written by hand after the shapes that their interfaces document."""

from importlib import import_module
from pkgutil import iter_modules

from traced.talks import Files

SETS: dict[str, Files] = {
    f"{module.name}: {name}": files
    for module in iter_modules(__path__)
    for name, files in getattr(import_module(f"traced.{module.name}"), "SETS", {}).items()
}
"""By tool and kind of export, the files that are read together."""
