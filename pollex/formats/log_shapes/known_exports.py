"""The known export formats, one module for each tool; modules with `EXPORTS` are found."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pollex.formats.log_shapes.exports import Export

NEAR = 0.6
"""The share of a format's keys from which on a row that lacks the others is said to look like it."""


def _found() -> tuple[Export, ...]:
    modules = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    inside = (import_module(f"{__package__}.{name}") for name in modules if name != Path(__file__).stem)
    return tuple(export for module in inside for export in getattr(module, "EXPORTS", ()))


EXPORTS = _found()


def export_of(fields: Mapping[str, Any]) -> Export | None:
    """Return the most specific format whose keys a row has; None if there is none."""
    fitting = [export for export in _possible(frozenset(fields)) if export.recognises(fields)]
    return max(fitting, key=lambda export: _weight(export, fields), default=None)


@lru_cache(maxsize=256)
def _possible(names: frozenset[str]) -> tuple[Export, ...]:
    """Return the formats possible for these top-level names; cached for all rows of a table."""
    return tuple(
        export
        for export in EXPORTS
        if any(all(key in names or key.partition(".")[0] in names for key in sign) for sign in export.signs)
    )


def _weight(export: Export, fields: Mapping[str, Any]) -> int:
    return max(len(sign) for sign in export.signs if Export(export.name, (sign,), export.read).recognises(fields))


def respelled(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row with keys respelled as a known format's; None if none fits."""
    spelled = {_folded(name) for name in fields}
    for export in EXPORTS:
        for sign in export.signs:
            if len(sign) > 1 and all(_folded(key.split(".")[0]) in spelled for key in sign):
                known = {_folded(name): name for name in (*_names(export), *(key.split(".")[0] for key in sign))}
                row = {known.get(_folded(name), name): value for name, value in fields.items()}
                if export.recognises(row):
                    return row
    return None


def _names(export: Export) -> list[str]:
    """List all top-level names of a format."""
    tops = [key.split(".")[0] for sign in export.signs for key in sign]
    return [*tops, *export.names.split()]


def nearest(fields: Mapping[str, Any]) -> str:
    """Describe the format that a row resembles, and its missing keys; empty if none."""
    shares = [(*export.missing(fields), export.name) for export in EXPORTS if all(export.signs) and not export.no_words]
    share, lacking, name = max(shares, key=lambda found: (found[0], -len(found[1])))
    if share < NEAR or not lacking:
        return ""
    return f"it looks like {name}, but has no {' and no '.join(lacking)}"


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
