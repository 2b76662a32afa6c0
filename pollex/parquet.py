"""Parquet from JSON lines, by DuckDB, with every type given: nothing is inferred, neither from rows nor from paths."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path


def write_parquet_of(lines: Path, path: Path, columns: Mapping[str, str]) -> None:
    """Writes `path` from the JSON objects in `lines`.

    Args:
        columns: Every field with DuckDB's type for it. To DuckDB names that differ in case alone are one.
    """
    import duckdb  # other formats don't need it

    types = ", ".join(f"{_quoted(name)}: {_quoted(type_)}" for name, type_ in columns.items())
    # A path is a pattern to DuckDB, and folders named like `id=1` would take the columns' place.
    source = f"read_json(?, format = 'newline_delimited', hive_partitioning = false, columns = {{{types}}})"
    with duckdb.connect() as database:
        target = _quoted(str(path))
        database.execute(f"COPY (SELECT * FROM {source}) TO {target} (FORMAT parquet)", [glob.escape(str(lines))])  # noqa: S608


def _quoted(text: str) -> str:
    """A text of SQL."""
    return "'" + text.replace("'", "''") + "'"
