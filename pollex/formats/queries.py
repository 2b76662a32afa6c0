"""Rows of Parquet files and of queries: `duckdb:FILE?SELECT …`, `sqlite:FILE?SELECT …`, `postgres:…`.

Only reading is possible, each database sees to it; DuckDB's extensions are never fetched and
nothing but the file is opened. A query runs in a process of its own; see `query_process`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.bounds import QUERY_TIMEOUT_SECONDS
from pollex.formats.file_kinds import QUERY_SOURCE_PATTERN
from pollex.formats.json_rows import LogRow, iterate_rows_of_json_value
from pollex.formats.query_process import run_query_in_process
from pollex.store.folder import make_utf8_path
from pollex.text import escape_controls

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


REWRITE_PARQUET_HINT = (
    "write it again with the columns that pollex reads: id, messages and the label"
)


def iterate_parquet_rows(source: str, path: Path) -> Iterator[LogRow | BadRow]:
    """Yield one row for each Parquet row, or those of its page.

    Raises:
        BadInput: The file can't be read as Parquet.
    """
    import duckdb  # other formats don't need it

    from pollex.formats.databases import QueryError

    pattern = glob.escape(str(make_utf8_path(path)))  # a path is a pattern to DuckDB
    try:
        with duckdb.connect(config={"threads": 1}) as connection:
            # Folders named like `a=1` would become columns.
            yield from iterate_connection_rows(
                source, connection, "read_parquet(?, hive_partitioning = false)", [pattern]
            )
    except QueryError as error:
        what = f"can't be read as Parquet: {error}"
        raise BadInput(what, where=source, hint=REWRITE_PARQUET_HINT) from error
    except duckdb.InternalException as error:
        # Its words are of its own code, with a stack trace: lists within lists are what it can't
        # count.
        what = "can't be read as Parquet: it is nested too deeply, or damaged"
        raise BadInput(what, where=source, hint=REWRITE_PARQUET_HINT) from error
    except (duckdb.Error, UnicodeError) as error:
        # after it comes our own SQL
        reason = " ".join(str(error).partition("\nLINE ")[0].split())
        raise BadInput(
            f"can't be read as Parquet: {reason:.300}",
            where=source,
            hint="write it again",
        ) from error


def iterate_connection_rows(
    source: str,
    connection: DuckDBPyConnection,
    table: str,
    parameters: list[str],
) -> Iterator[LogRow | BadRow]:
    """Yield the rows of a table, or those of its pages.

    Args:
        parameters: The values of its question marks.
    """
    from pollex.formats.databases import iterate_table_rows  # queries alone need it

    for number, fields in enumerate(iterate_table_rows(connection, table, parameters), start=1):
        yield from iterate_rows_of_json_value(source, number, fields)


_READING_QUERY_PATTERN = re.compile(
    r"(?:\s++|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|\()*+(?:select|with|from|values|table)\b",
    re.IGNORECASE,
)
"""How a query that reads begins, after comments and brackets. Nothing is tried twice: comments take no time."""
_QUOTED_TEXT_PATTERN = re.compile(r"""['"]([^'"\n]+)['"]""")
"""A text in a query, which may name a file."""
_PASSWORD_PATTERN = re.compile(r"pass(?:word|wd)?\s*=", re.IGNORECASE)
TABLES_QUERY_BY_KIND = {
    "duckdb": "SELECT table_name, column_name FROM information_schema.columns",
    "sqlite": "SELECT m.name AS t, c.name AS c FROM sqlite_master m, pragma_table_info(m.name) c "
    "WHERE m.type IN ('table', 'view')",
    "postgres": "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
}
"""Queries for what a database holds."""
MAX_TABLES_LISTED = 8


def list_files_named_in_query(source: str) -> list[str]:
    """List what may be the files of a query: its database, and what stands between quotes in it."""
    match = QUERY_SOURCE_PATTERN.fullmatch(source)
    if match is None:
        return []

    names = [match[2]]
    for quoted in _QUOTED_TEXT_PATTERN.findall(match[3] or ""):
        names.extend(glob.glob(quoted, recursive=True))  # noqa: PTH207 - as `find_files` of logs
    return names


def iterate_query_rows(
    source: str, seconds: float = QUERY_TIMEOUT_SECONDS
) -> Iterator[LogRow | BadRow]:
    """Yield the rows of a query.

    Args:
        seconds: How long it may take.

    Raises:
        WrongUse: There is no query, it would write, or the source holds a password.
        BadInput: The database can't be opened, the query fails or takes too much, or it returns no
            row.
    """
    kind, place, query = _split_query_source(source)
    where = f"{kind}:{place}"
    # one SELECT, and nothing else
    if not query:
        raise WrongUse(
            "the query is missing",
            where=where,
            hint=f"give {where}?SELECT …{_describe_tables(kind, place)}",
        )

    if not _READING_QUERY_PATTERN.match(query):
        what = f"not a query that reads: {escape_controls(query.strip(), 60)}"
        raise WrongUse(
            what,
            where=where,
            hint=f"give one SELECT: {where}?SELECT …",
        )

    number = 0
    for row in run_query_in_process(kind, place, query, seconds):
        number += 1
        rows = (
            iterate_rows_of_json_value(where, number, row)
            if kind == "duckdb"
            else [LogRow(where, number, row)]
        )
        yield from rows

    if not number:
        hint = f"check its conditions and tables{_describe_tables(kind, place)}"
        raise BadInput(
            "the query returns no rows, so there are no conversations",
            where=where,
            hint=hint,
        )


def _split_query_source(source: str) -> tuple[str, str, str]:
    match = QUERY_SOURCE_PATTERN.fullmatch(source)
    assert match is not None, "`is_query_source` was asked"
    kind = match[1].replace("postgresql", "postgres")
    place = match[2]
    query = (match[3] or "").strip().rstrip(";")
    if kind == "postgres" and _names_password(place, query):
        hint = (
            "leave it out, and give PGPASSWORD or a password file (PGPASSFILE) in the environment"
        )
        raise WrongUse(
            "a password in the source would be kept with the run",
            where="postgres",
            hint=hint,
        )

    if kind != "postgres" and not Path(place).is_file():
        raise BadInput(
            "no such database",
            where=f"{kind}:{place}",
            hint="check the path",
        )

    if kind == "postgres" and find_spec("psycopg") is None:
        hint = "install the extra: pip install 'pollex[postgres]'"
        raise WrongUse(
            "PostgreSQL needs the package psycopg",
            where=f"postgres:{place}",
            hint=hint,
        )

    return kind, place, query


def _names_password(place: str, query: str) -> bool:
    """Tell whether a source names a password: in its address, or in what stands before a query as its parameters."""
    address = unquote(place)
    # what isn't a query that reads may be parameters of the address
    if _READING_QUERY_PATTERN.match(query):
        parameters = ""
    else:
        parameters = unquote(query)

    return (
        re.search(r"//[^@]*:[^@]*@", address) is not None
        or _PASSWORD_PATTERN.search(address + parameters) is not None
    )


def _describe_tables(kind: str, place: str) -> str:
    tables: dict[str, list[str]] = {}
    for row in run_query_in_process(kind, place, TABLES_QUERY_BY_KIND[kind]):
        table, column = row.values()
        tables.setdefault(str(table), []).append(str(column))

    shown = []
    for name, columns in tables.items():
        shown.append(f"{escape_controls(name, 60)} ({escape_controls(', '.join(columns), 200)})")

    return f"; it has {'; '.join(shown[:MAX_TABLES_LISTED]) or 'no table'}"
