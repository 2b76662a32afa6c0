"""Parquet, read by DuckDB row by row."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import Row, rows_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

BATCH = 64
"""Rows held at once."""

PLAIN = frozenset({"VARCHAR", "BOOLEAN", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
"""Types whose values Python has as JSON would."""


def parquet_rows(source: str, path: Path) -> Iterator[Row | BadRow]:
    """Yield one row for each Parquet row, or those of its page.

    Raises:
        BadInput: The file can't be read as Parquet.
    """
    import duckdb  # other formats don't need it

    pattern = glob.escape(str(path.absolute()))  # a path is a pattern to DuckDB
    try:
        with duckdb.connect(config={"threads": 1}) as connection:
            # Folders named like `a=1` would become columns.
            yield from queried_rows(source, connection, "read_parquet(?, hive_partitioning = false)", [pattern])
    except (duckdb.Error, UnicodeError) as error:
        said = " ".join(str(error).partition("\nLINE ")[0].split())  # after it comes our own SQL
        raise BadInput(f"can't be read as Parquet: {said:.300}", where=source, remedy="write it again") from error


def queried_rows(source: str, connection: DuckDBPyConnection, table: str, given: list[str]) -> Iterator[Row | BadRow]:
    """Yield the rows of a table or a query in brackets, as JSON would have their values.

    Args:
        given: The values of its question marks.
    """
    found = connection.sql(f"SELECT * FROM {table}", params=given)  # noqa: S608 - ours, or the user's own query
    quoted = ['"' + name.replace('"', '""') + '"' for name in found.columns]
    plain = [_is_plain(type_) for type_ in found.types]  # dates, decimals and the like come as JSON
    asked = [name if own else f"to_json({name})::VARCHAR" for name, own in zip(quoted, plain, strict=True)]
    rows = connection.execute(f"SELECT {', '.join(asked)} FROM {table}", given)  # noqa: S608
    number, names = 0, found.columns
    while batch := rows.fetchmany(BATCH):
        for row in batch:
            values = zip(names, row, plain, strict=True)
            fields = {name: _filled(one if own or one is None else json.loads(one)) for name, one, own in values}
            yield from rows_in(source, number := number + 1, fields)


def _is_plain(type_: DuckDBPyType) -> bool:
    if type_.id in ("list", "struct"):
        return all(_is_plain(cast("DuckDBPyType", child)) for _, child in type_.children)
    return str(type_) in PLAIN


def _filled(value: Any) -> Any:
    """Leave out what is null inside: a column of objects has the keys of all its rows."""
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items() if one is not None or name == "content"}
    return None if value != value else value
