"""Known shapes of tables of answers and of judgments, one module for each shape.

A new module in this folder with a `SHAPE` is a new shape. It is given rows; `formats.read_tables` reads files (CSV,
TSV, JSON lines, Parquet).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from pollex.errors import BadInput
from pollex.formats.answer_shapes.shape import Row, Shape, Side

SHAPES: tuple[Shape, ...] = tuple(
    module.SHAPE
    for name in sorted(found.name for found in pkgutil.iter_modules(__path__))
    if hasattr(module := import_module(f"{__name__}.{name}"), "SHAPE")
)


def shape_of(rows: Sequence[Row], side: Side) -> Shape:
    """Return the shape of the rows of one file, by its first row.

    Raises:
        BadInput: There is no row, or no shape fits; says what each needs.
    """
    if not rows:
        raise BadInput("a table without a row", remedy=f"give {_needs(side)}")
    for shape in SHAPES:
        if shape.recognises(rows[0].fields, side):
            return shape
    have = ", ".join(list(rows[0].fields)[:12])
    where = f"{rows[0].source}:{rows[0].line}"
    raise BadInput(f"no table of {side}: it has {have}", where=where, remedy=f"known are {_needs(side)}")


def _needs(side: Side) -> str:
    return "; ".join(f"{shape.name} ({shape.columns[side]})" for shape in SHAPES if side in shape.columns)
