"""The export formats that are known, one module a tool; a new module with `EXPORTS` is all that a new one takes."""

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
    """The format whose keys a row has, that with most keys where it has those of several; None for none."""
    fitting = [export for export in _possible(frozenset(fields)) if export.recognises(fields)]
    return max(fitting, key=lambda export: _weight(export, fields), default=None)


@lru_cache(maxsize=256)
def _possible(names: frozenset[str]) -> tuple[Export, ...]:
    """Return the formats that rows with these names at the top may be; a million rows of a table share them."""
    return tuple(
        export
        for export in EXPORTS
        if any(all(key in names or key.partition(".")[0] in names for key in sign) for sign in export.signs)
    )


def _weight(export: Export, fields: Mapping[str, Any]) -> int:
    return max(len(sign) for sign in export.signs if Export(export.name, (sign,), export.read).recognises(fields))


def respelled(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row whose keys are a known format's but for case, spaces, `_` and `-`, in that format's spelling; else None."""
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
    """All names that a format is known to have at the top of a row."""
    tops = [key.split(".")[0] for sign in export.signs for key in sign]
    return tops + [name for row in export.example for name in row]


def nearest(fields: Mapping[str, Any]) -> str:
    """The format that a row looks like, and what it lacks; empty where it looks like none."""
    shares = [(*export.missing(fields), export.name) for export in EXPORTS if export.signs != ((),)]
    share, lacking, name = max(shares, key=lambda found: (found[0], -len(found[1])))
    if share < NEAR or not lacking:
        return ""
    return f"it looks like {name}, but has no {' and no '.join(lacking)}"


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
