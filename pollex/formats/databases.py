"""Databases that queries read: DuckDB, SQLite and PostgreSQL, each so that it can be read only.

Python's own sqlite3 reads SQLite, and psycopg PostgreSQL, since DuckDB would download its readers
for both.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pollex.errors import BadInput
from pollex.formats.frames import convert_to_plain_python_value
from pollex.text import JsonDict, escape_controls

if TYPE_CHECKING:
    import psycopg
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

QueryCancelCallbacks = list[Callable[[], None]]
"""Given what ends a query at its server."""

MAX_SQLITE_VALUE_BYTES = 128 << 20
"""Bytes of the longest value of SQLite: a row of more than 32 MB is refused later, anyway."""
POSTGRES_FETCH_ROWS = 64
"""Rows that PostgreSQL sends at once."""

HARMLESS_VOLATILE_FUNCTIONS = frozenset({
    "random", "random_normal", "setseed", "clock_timestamp", "timeofday", "gen_random_uuid", "uuid_generate_v4",
    "currval", "lastval", "pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size",
    "pg_database_size", "pg_column_size", "pg_relation_filenode", "obj_description",
})  # fmt: skip
"""Functions of PostgreSQL that may give another value each time, and change nothing."""

_SQL_LITERAL_OR_COMMENT_PATTERN = re.compile(
    r"""'(?:[^']|'')*+'|\$(\w*)\$.*?\$\1\$|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/""",
    re.DOTALL,
)
"""Texts and comments of a query."""
_FUNCTION_CALL_PATTERN = re.compile(r"""(?:"((?:[^"]|"")++)"|([^\W\d][\w$]*+))\s*+\(""")


MAX_DATABASE_ROWS_PER_BATCH = 64
"""Rows held at once."""

PLAIN_DUCKDB_TYPES = frozenset(
    {"VARCHAR", "BOOLEAN", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
)
"""Types whose values Python has as JSON would."""


NESTED_DUCKDB_TYPES = frozenset({"list", "array", "map", "struct", "union"})
"""Types that hold others; all but structs and unions are lists to DuckDB."""
MAX_NESTED_LISTS = 16
"""Lists within lists that are read: each further level doubles the time that DuckDB plans a query."""


class QueryError(Exception):
    """Why a query can't be run, in a line."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            escape_controls(
                " ".join(str(reason).partition("\nLINE ")[0].split()),
                300,
            )
        )


def iterate_table_rows(
    connection: DuckDBPyConnection,
    table: str,
    parameters: list[str],
) -> Iterator[JsonDict]:
    """Yield the rows of a table or a query in brackets, as JSON would have their values.

    Raises:
        FailedQuery: A column has lists within lists, and so on, without a sensible end.
    """
    relation = connection.sql(f"SELECT * FROM {table}", params=parameters)  # noqa: S608 - ours, or the user's own query
    # types are known without the plan of a query, which would take for ever
    for name, type_ in zip(relation.columns, relation.types, strict=True):
        if (levels := count_nested_lists(type_)) > MAX_NESTED_LISTS:
            raise QueryError(
                f"{name:.60} has lists within lists, {levels} deep: at most {MAX_NESTED_LISTS} are read"
            )

    quoted = []
    for name in relation.columns:
        quoted.append('"' + name.replace('"', '""') + '"')

    # dates, decimals and the like come as JSON
    plain = [_is_plain_duckdb_type(type_) for type_ in relation.types]
    expressions = []
    for name, as_it_is in zip(quoted, plain, strict=True):
        expressions.append(name if as_it_is else f"to_json({name})::VARCHAR")

    rows = connection.execute(f"SELECT {', '.join(expressions)} FROM {table}", parameters)  # noqa: S608
    names = relation.columns
    while batch := rows.fetchmany(MAX_DATABASE_ROWS_PER_BATCH):
        for row in batch:
            values = zip(names, row, plain, strict=True)
            yield {
                name: _drop_inner_nulls(cell if as_it_is or cell is None else json.loads(cell))
                for name, cell, as_it_is in values
            }


def count_nested_lists(type_: DuckDBPyType) -> int:
    """Count how many lists stand within each other in a type; a map is one, too."""
    if type_.id not in NESTED_DUCKDB_TYPES:
        return 0

    levels = []
    for name, child in type_.children:
        # that of an array of fixed size is a number
        if name != "size" or not isinstance(child, int):
            levels.append(count_nested_lists(cast("DuckDBPyType", child)))

    return max(levels, default=0) + (type_.id not in ("struct", "union"))


def _is_plain_duckdb_type(type_: DuckDBPyType) -> bool:
    if type_.id in ("list", "struct"):
        return all(
            _is_plain_duckdb_type(cast("DuckDBPyType", child)) for _, child in type_.children
        )
    return str(type_) in PLAIN_DUCKDB_TYPES


def _drop_inner_nulls(value: object) -> object:
    """Leave out what is null inside: a column of objects has the keys of all its rows."""
    if isinstance(value, list):
        return [_drop_inner_nulls(inner) for inner in value]
    if isinstance(value, dict):
        nulls = {}
        for name, inner in value.items():
            # a null `content` stays: such a message may consist of calls
            if inner is not None or name == "content":
                nulls[name] = _drop_inner_nulls(inner)
        return nulls

    return None if value != value else value


def iterate_duckdb_rows(
    place: str, query: str, cancels: QueryCancelCallbacks
) -> Iterator[JsonDict]:
    """Yield the rows that a query of a DuckDB file gives; nothing but the file is opened.

    Raises:
        FailedQuery: It can't be run.
    """
    import duckdb  # other databases don't need it

    # no other file, no network, no setting that the query could change
    closed: JsonDict = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "memory_limit": "600MB",
        "threads": "1",
        "temp_directory": "",
        "lock_configuration": "true",
    }
    try:
        # a second statement would run outside of the brackets below
        if len(duckdb.extract_statements(query)) != 1:
            raise QueryError("several statements")
        with duckdb.connect(place, read_only=True, config=closed) as connection:
            cancels.append(connection.interrupt)
            yield from iterate_table_rows(connection, f"({query}\n)", [])
    except (duckdb.OutOfMemoryException, duckdb.InternalException) as error:
        raise MemoryError from error
    except duckdb.Error as error:
        raise QueryError(error) from error


def iterate_sqlite_rows(
    place: str, query: str, cancels: QueryCancelCallbacks
) -> Iterator[JsonDict]:
    """Yield the rows that a query of a SQLite file gives.

    Raises:
        FailedQuery: It can't be run.
    """
    address = f"{Path(place).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            cancels.append(connection.interrupt)
            # no value of any size, and no second database beside this one
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_SQLITE_VALUE_BYTES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            cursor = connection.execute(query)
            names = [column[0] for column in cursor.description or ()]
            for row in cursor:
                yield _make_json_row(names, row)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise QueryError(error) from error


def make_postgres_address(place: str) -> str:
    """Return what PostgreSQL's library takes for a place: an address, or the name of a database."""
    if place.startswith("//"):
        return f"postgresql:{place}"
    return f"dbname={place}" if place else ""


def list_postgres_hosts(place: str) -> set[str]:
    """Return the hosts that a place of PostgreSQL names, or whatever may name one.

    Raises:
        BadInput: It can't be read.
    """
    import psycopg  # an extra
    from psycopg.conninfo import conninfo_to_dict

    try:
        values = conninfo_to_dict(make_postgres_address(place))
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"no address of PostgreSQL: {reason:.200}", hint="check it") from None

    hosts = {str(values[name]) for name in ("host", "hostaddr", "service") if name in values}
    if (name := str(values.get("dbname", ""))) and ("=" in name or "://" in name):
        hosts.add(name)

    return hosts


def iterate_postgres_rows(
    place: str, query: str, cancels: QueryCancelCallbacks
) -> Iterator[JsonDict]:
    """Yield the rows that a query of PostgreSQL gives: by a cursor of the server, in a transaction that only reads.

    The transaction is never committed, since some functions write in it all the same.

    Raises:
        FailedQuery: It can't be run, or calls what could change something.
    """
    import psycopg  # an extra

    try:
        with closing(psycopg.connect(make_postgres_address(place))) as connection:
            cancels.append(connection.cancel)
            connection.read_only = True
            _refuse_functions_with_side_effects(connection, query)

            # This protocol takes a single statement; a second one could end the transaction.
            declared = connection.pgconn.exec_params(
                f"DECLARE pollex NO SCROLL CURSOR FOR {query}".encode(),
                None,
            )
            if declared.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise QueryError(declared.error_message.decode("utf-8", "replace"))
            # rows come in batches, so that memory stays small
            while batch := (
                cursor := connection.execute(f"FETCH {POSTGRES_FETCH_ROWS} FROM pollex")
            ).fetchall():
                names = [column.name for column in cursor.description or ()]
                for row in batch:
                    yield _make_json_row(names, row)

            # a function that wrote all the same has given the transaction an id
            wrote = connection.execute(
                "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
            ).fetchone()
            if wrote and wrote[0]:
                raise QueryError("it writes; nothing of that was kept")
    except psycopg.Error as error:
        raise QueryError(error) from None


VOLATILE_FUNCTIONS_QUERY = """
    SELECT proname FROM pg_proc AS p
    WHERE provolatile = 'v' AND proname = ANY(%s) AND (
        pronamespace = 'pg_catalog'::regnamespace
        OR EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e' AND classid = 'pg_proc'::regclass)
    )
"""
"""Which of some functions are PostgreSQL's own or an extension's, and may do more than give a value."""


def _refuse_functions_with_side_effects(connection: psycopg.Connection[Any], query: str) -> None:
    """Refuse functions that act, such as `lo_export`, which a transaction that only reads lets through."""
    # names inside of texts and comments call nothing
    code = _SQL_LITERAL_OR_COMMENT_PATTERN.sub(" ", query)
    if re.search(r'\bu&"', code, re.IGNORECASE):
        raise QueryError('names by code points (U&"…") are not read')

    names = []
    for quoted, plain in _FUNCTION_CALL_PATTERN.findall(code):
        names.append(quoted.replace('""', '"') or plain.lower())

    functions = connection.execute(VOLATILE_FUNCTIONS_QUERY, [names]).fetchall()
    if acting := sorted({name for (name,) in functions} - HARMLESS_VOLATILE_FUNCTIONS):
        raise QueryError(
            f"it calls {', '.join(acting)}, which may change something; only reading is possible"
        )


DatabaseReader = Callable[[str, str, QueryCancelCallbacks], Iterator[JsonDict]]

DATABASE_READER_BY_KIND: dict[str, DatabaseReader] = {
    "duckdb": iterate_duckdb_rows,
    "sqlite": iterate_sqlite_rows,
    "postgres": iterate_postgres_rows,
}


def _make_json_row(names: list[str], values: Any) -> JsonDict:
    return {name: _convert_to_json_value(value) for name, value in zip(names, values, strict=True)}


def _convert_to_json_value(value: object) -> object:
    """Return a value as JSON has it; bytes that are no text are left out."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return float(value)

    plain_value = convert_to_plain_python_value(value)
    if isinstance(plain_value, str | int | float | list | dict | None):
        return plain_value
    return str(plain_value)
