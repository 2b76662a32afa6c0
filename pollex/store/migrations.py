"""The schema's history: each migration is a function that is run once and recorded by name.

Never edit one that was released: add the next. Conventions of all tables: facts are only ever added; the order of rows
is the order in which they were written; times are ISO 8601 in UTC; `VARCHAR` columns called payload, turns, metadata,
quotes, arguments, fingerprint, versions and result hold JSON. There is no index on any table, for DuckDB's are slow to
write and have been the cause of failing recoveries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from duckdb import DuckDBPyConnection

from pollex.errors import WrongUse
from pollex.store.database import Database
from pollex.store.tables import now

Migration = Callable[[DuckDBPyConnection], None]

MIGRATIONS: dict[str, Migration] = {}
"""All migrations by name, in the order in which they are run."""


def migration(function: Migration) -> Migration:
    """Adds `function` to the history under its own name."""
    MIGRATIONS[function.__name__] = function
    return function


@migration
def m01_tables(connection: DuckDBPyConnection) -> None:
    """Conversations, what was found in them and answered about them; runs with their steps and spans; the ledger."""
    connection.execute("""
        CREATE TABLE texts (text_hash VARCHAR, turns VARCHAR);
        CREATE TABLE conversations (run VARCHAR, id VARCHAR, text_hash VARCHAR, label VARCHAR, judge VARCHAR,
            "group" VARCHAR, metadata VARCHAR, side VARCHAR);
        CREATE TABLE extractions (run VARCHAR, conversation VARCHAR, summary VARCHAR, dropped INTEGER, outcome VARCHAR,
            detail VARCHAR, judge VARCHAR);
        CREATE TABLE reasons (run VARCHAR, id VARCHAR, conversation VARCHAR, polarity VARCHAR, text VARCHAR,
            quotes VARCHAR, source VARCHAR);
        CREATE TABLE rubrics (run VARCHAR, id VARCHAR, polarity VARCHAR, text VARCHAR, reason_ids VARCHAR[],
            quotes VARCHAR, source VARCHAR);
        CREATE TABLE rubric_sets (run VARCHAR, id VARCHAR, payload VARCHAR);
        CREATE TABLE answers (run VARCHAR, conversation VARCHAR, text_hash VARCHAR, question VARCHAR,
            question_hash VARCHAR, fingerprint VARCHAR, judge VARCHAR, probabilities DOUBLE[], chosen INTEGER,
            source VARCHAR, outcome VARCHAR, detail VARCHAR, justification VARCHAR, turns INTEGER[]);
        CREATE TABLE scores (run VARCHAR, conversation VARCHAR, netsat DOUBLE, label VARCHAR, confident BOOLEAN,
            probability DOUBLE);
        CREATE TABLE spans (run VARCHAR, id VARCHAR, parent VARCHAR, name VARCHAR, kind VARCHAR, item VARCHAR,
            inputs VARCHAR[], outputs VARCHAR[], started VARCHAR, ms DOUBLE, error VARCHAR);
        CREATE TABLE runs (id VARCHAR, number BIGINT, command VARCHAR, arguments VARCHAR, fingerprint VARCHAR,
            versions VARCHAR, started VARCHAR);
        CREATE TABLE run_events (run VARCHAR, status VARCHAR, time VARCHAR, roles VARCHAR[], result VARCHAR);
        CREATE TABLE steps (run VARCHAR, name VARCHAR, payload VARCHAR);
        CREATE TABLE ledger (key VARCHAR, kind VARCHAR, attempt INTEGER, time VARCHAR, payload VARCHAR);
        CREATE TABLE mark ("offset" BIGINT, crc BIGINT);
        INSERT INTO mark VALUES (0, 0)
    """)


def applied(database: Database) -> list[str]:
    """Names of the migrations that a file went through, in order; none for a file without a schema."""
    if not database.value("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'migrations'"):
        return []
    return [row["name"] for row in database.rows("SELECT name FROM migrations ORDER BY rowid")]


def pending(names: Sequence[str], path: Path) -> list[str]:
    """Migrations that a file with the `names` behind it still needs.

    Raises:
        WrongUse: The file went through migrations that this version doesn't know.
    """
    unknown = [name for name in names if name not in MIGRATIONS]
    if unknown:
        raise WrongUse(
            f"the store has schema {len(names)} ({unknown[-1]}), and pollex {version('pollex')} knows schemas "
            f"up to {len(MIGRATIONS)} ({list(MIGRATIONS)[-1]})",
            where=str(path),
            remedy="install the newer pollex, or give another folder with --store; the store was left as it is",
        )
    return [name for name in MIGRATIONS if name not in names]


def migrate(database: Database, names: Sequence[str]) -> None:
    """Runs the migrations `names`, each in one transaction, with its record.

    The checkpoint behind each keeps schema changes out of the write-ahead log, whose replay has failed on them.
    """
    for name in names:
        database.in_transaction(partial(_apply, name))
        database.execute("CHECKPOINT")


def _apply(name: str, cursor: DuckDBPyConnection) -> None:
    cursor.execute("CREATE TABLE IF NOT EXISTS migrations (name VARCHAR, time VARCHAR, pollex VARCHAR)")
    MIGRATIONS[name](cursor)
    cursor.execute("INSERT INTO migrations VALUES (?, ?, ?)", [name, now(), version("pollex")])
