"""Rows of Parquet files and of queries: `duckdb:FILE?SELECT …`, `sqlite:FILE?SELECT …`, `postgres:…`.

Only reading is possible, each database sees to it; DuckDB's extensions are never fetched and nothing but the file is
opened. Python's own sqlite3 reads SQLite, and psycopg PostgreSQL, since DuckDB would download its readers for both.
"""

from __future__ import annotations

import glob
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.frames import as_plain
from pollex.formats.json_rows import LogRow, rows_in
from pollex.text import printable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

BATCH = 64
"""Rows held at once."""

PLAIN = frozenset({"VARCHAR", "BOOLEAN", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
"""Types whose values Python has as JSON would."""


def parquet_rows(source: str, path: Path) -> Iterator[LogRow | BadRow]:
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


def queried_rows(
    source: str, connection: DuckDBPyConnection, table: str, given: list[str]
) -> Iterator[LogRow | BadRow]:
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


_SOURCE = re.compile(r"(duckdb|sqlite|postgres(?:ql)?):([^?]*)(?:\?(.*))?", re.DOTALL)
_READS = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/|\()*(select|with|from|values|table)\b", re.IGNORECASE | re.DOTALL)
TABLES = {
    "duckdb": "SELECT table_name, column_name FROM information_schema.columns",
    "sqlite": "SELECT m.name AS t, c.name AS c FROM sqlite_master m, pragma_table_info(m.name) c "
    "WHERE m.type IN ('table', 'view')",
    "postgres": "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
}
"""Queries for what a database holds."""
MOST_TABLES = 8


def is_query(source: str) -> bool:
    """Return whether a source names a database."""
    return _SOURCE.fullmatch(source) is not None


def sql_rows(source: str) -> Iterator[LogRow | BadRow]:
    """Yield the rows of a query.

    Raises:
        WrongUse: There is no query, it would write, or the source holds a password.
        BadInput: The database can't be opened, the query fails, or it returns no row.
    """
    kind, place, query = _parts(source)
    where = f"{kind}:{place}"
    if not query:
        raise WrongUse("the query is missing", where=where, remedy=f"give {where}?SELECT …{_tables(kind, place)}")
    if not _READS.match(query):
        what = f"not a query that reads: {printable(query.strip(), 60)}"
        raise WrongUse(what, where=where, remedy=f"give one SELECT: {where}?SELECT …")
    number = 0
    for number, row in enumerate(RUNS[kind](place, query), start=1):
        yield row if isinstance(row, BadRow) else LogRow(where, number, row)
    if not number:
        remedy = f"check its conditions and tables{_tables(kind, place)}"
        raise BadInput("the query returns no rows, so there are no conversations", where=where, remedy=remedy)


def _parts(source: str) -> tuple[str, str, str]:
    found = _SOURCE.fullmatch(source)
    assert found is not None, "`is_query` was asked"
    kind, place, query = found[1].replace("postgresql", "postgres"), found[2], (found[3] or "").strip().rstrip(";")
    if kind == "postgres" and (re.search(r"//[^/]*:[^/]*@", place) or "password" in place):
        remedy = "leave it out, and give PGPASSWORD or a password file (PGPASSFILE) in the environment"
        raise WrongUse("a password in the source would be kept with the run", where="postgres", remedy=remedy)
    if kind != "postgres" and not Path(place).is_file():
        raise BadInput("no such database", where=f"{kind}:{place}", remedy="check the path")
    return kind, place, query


def _tables(kind: str, place: str) -> str:
    tables: dict[str, list[str]] = {}
    for row in RUNS[kind](place, TABLES[kind]):
        table, column = row.values()
        tables.setdefault(str(table), []).append(str(column))
    shown = [f"{printable(name, 60)} ({printable(', '.join(columns), 200)})" for name, columns in tables.items()]
    return f"; it has {'; '.join(shown[:MOST_TABLES]) or 'no table'}"


def _duckdb(place: str, query: str) -> Iterator[Any]:
    import duckdb  # other formats don't need it

    closed: dict[str, Any] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "lock_configuration": "true",
    }
    try:
        if len(duckdb.extract_statements(query)) != 1:
            raise WrongUse("several statements", where=f"duckdb:{place}", remedy="give one SELECT")
        with duckdb.connect(place, read_only=True, config=closed) as connection:
            for row in queried_rows(f"duckdb:{place}", connection, f"({query}\n)", []):
                yield row.fields if isinstance(row, LogRow) else row
    except duckdb.Error as error:
        raise _failed("duckdb", place, str(error)) from error


def _sqlite(place: str, query: str) -> Iterator[dict[str, Any]]:
    try:
        with closing(sqlite3.connect(f"{Path(place).absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute(query)
            names = [column[0] for column in found.description or ()]
            for row in found:
                yield _row(names, row)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _failed("sqlite", place, str(error)) from error


def _postgres(place: str, query: str) -> Iterator[dict[str, Any]]:
    try:
        import psycopg  # an extra
    except ImportError:
        remedy = "install the extra: pip install 'pollex[postgres]'"
        raise WrongUse("PostgreSQL needs the package psycopg", where=f"postgres:{place}", remedy=remedy) from None
    try:
        address = f"postgresql:{place}" if place.startswith("//") else f"dbname={place}" if place else ""
        with psycopg.connect(address) as connection:
            connection.read_only = True
            with connection.cursor() as cursor:
                # A stream goes by the protocol that takes a single statement.
                for row in cursor.stream(query.encode()):
                    yield _row([column.name for column in cursor.description or ()], row)
    except psycopg.Error as error:
        raise _failed("postgres", place, str(error)) from None


RUNS: dict[str, Callable[[str, str], Iterator[Any]]] = {"duckdb": _duckdb, "sqlite": _sqlite, "postgres": _postgres}


def _row(names: list[str], values: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes that are no text are left out."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return float(value)
    found = as_plain(value)
    return found if isinstance(found, str | int | float | list | dict | None) else str(found)


def _failed(kind: str, place: str, said: str) -> BadInput:
    told = printable(" ".join(said.partition("\nLINE ")[0].split()), 300)
    where = f"{kind}:{place}"
    return BadInput(
        f"the query can't be run: {told}", where=where, remedy=f"give one SELECT that runs there: {where}?SELECT …"
    )
