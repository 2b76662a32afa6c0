"""Parquet, read by DuckDB row by row."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import Row, json_lines

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH = 64
"""Rows held at once."""


def parquet_rows(source: str, path: Path) -> Iterator[Row | BadRow]:
    """Yield one row for each Parquet row; DuckDB writes dates and decimals as JSON values.

    Raises:
        BadInput: The file can't be read as Parquet.
    """
    import duckdb  # other formats don't need it

    pattern = glob.escape(str(path.absolute()))  # a path is a pattern, and folders named `a=1` would become columns
    try:
        with duckdb.connect(config={"threads": 1}) as connection:
            rows = json_rows(connection, "read_parquet(?, hive_partitioning = false)", [pattern])
            yield from filled_rows(source, rows)
    except (duckdb.Error, UnicodeError) as error:
        said = " ".join(str(error).partition("\nLINE ")[0].split())  # after it comes our own SQL
        raise BadInput(f"can't be read as Parquet: {said:.300}", where=source, remedy="write it again") from error


def filled_rows(source: str, lines: Iterable[str]) -> Iterator[Row | BadRow]:
    """Yield the rows of JSON lines without what is null inside: a column of objects has the keys of all its rows."""
    for row in json_lines(source, lines):
        yield replace(row, fields={n: _filled(v) for n, v in row.fields.items()}) if isinstance(row, Row) else row


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items() if one is not None or name == "content"}
    return value


def json_rows(connection: DuckDBPyConnection, source: str, given: list[str]) -> Iterator[str]:
    """Yield each row of a table or a query in brackets as a JSON object.

    Args:
        given: The values of its question marks.
    """
    names = {column[0] for column in connection.execute(f"SELECT * FROM {source} LIMIT 0", given).description}  # noqa: S608
    row = next(name for name in (f"row_{n}" for n in range(len(names) + 1)) if name not in names)
    connection.execute(f"SELECT to_json({row})::VARCHAR FROM {source} {row}", given)  # noqa: S608
    while batch := connection.fetchmany(BATCH):
        yield from (line for (line,) in batch)
