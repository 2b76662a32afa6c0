"""The known log shapes, one module each; a new module with a `READER` is found."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pollex.errors import BadInput
from pollex.formats.log_shapes.shape import Reader
from pollex.text import printable

READERS: tuple[Reader, ...] = tuple(
    module.READER
    for name in sorted(found.name for found in pkgutil.iter_modules(__path__))
    if hasattr(module := import_module(f"{__name__}.{name}"), "READER")
)


class NoShape(BadInput):
    """A row that no reader knows."""


def reader_of(fields: Mapping[str, Any]) -> Reader:
    """Return the reader of a row's shape.

    Raises:
        NoShape: No shape fits.
        BadInput: More than one does.
    """
    fitting = [reader for reader in READERS if reader.recognises(fields)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        shapes = " and ".join(reader.name for reader in fitting)
        raise BadInput(
            f"the row has the shape of {shapes}", remedy="say which field holds the turns", option="messages_field"
        )
    shapes = "; ".join(f"{reader.name} ({reader.shape})" for reader in READERS)
    have = printable(", ".join(list(fields)[:12]), 200) or "no field"
    raise NoShape(f"no known shape: the row has {have}", remedy=f"known shapes: {shapes}")
