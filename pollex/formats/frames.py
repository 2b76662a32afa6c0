"""Rows that are in memory: lists of dicts, and tables of pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from pollex.errors import WrongUse

SHAPES = "give paths, conversations, a list of dicts, or a pandas, polars or Arrow table"


@runtime_checkable
class PandasFrame(Protocol):
    """Protocol of a pandas table."""

    def to_dict(self, orient: str) -> list[dict[str, Any]]: ...


@runtime_checkable
class PolarsFrame(Protocol):
    """Protocol of a polars table."""

    def to_dicts(self) -> list[dict[str, Any]]: ...


@runtime_checkable
class ArrowTable(Protocol):
    """Protocol of an Arrow table."""

    def to_pylist(self) -> list[dict[str, Any]]: ...


Rows = Iterable[Mapping[str, Any]] | PandasFrame | PolarsFrame | ArrowTable


def rows_in(given: Rows) -> Iterator[dict[str, Any]]:
    """Yield rows with plain Python values; missing values of tables are None.

    Raises:
        WrongUse: A row is no dict, or the whole is none of the known shapes.
    """
    if isinstance(given, PolarsFrame):
        yield from given.to_dicts()
    elif isinstance(given, ArrowTable):
        yield from given.to_pylist()
    elif isinstance(given, PandasFrame) and not isinstance(given, Mapping):
        for record in given.to_dict("records"):
            yield {str(name): plain(value) for name, value in record.items()}
    elif isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        for number, row in enumerate(given, start=1):
            if not isinstance(row, Mapping):
                raise WrongUse(f"not a log: item {number} is {type(row).__name__}", remedy=SHAPES)
            yield dict(row)
    else:
        raise WrongUse(f"not a log, but {type(given).__name__}", remedy=SHAPES)


def plain(value: Any) -> Any:
    """Convert a table's value to plain Python: arrays to lists, NaN and NaT to None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    return None if value != value or value == "NaT" else value
