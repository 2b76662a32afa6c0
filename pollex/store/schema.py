"""The database's schema as steps forward: `PRAGMA user_version` says how many of them a file went through.

Never edit a step that was released: add the next. Times are ISO 8601 in UTC. Columns called payload, arguments,
fingerprint, versions, roles, result, quotes, inputs, outputs, reason_ids and value hold JSON.
"""

from __future__ import annotations

import sqlite3
from importlib.metadata import version

from pollex.errors import WrongUse
from pollex.store.labelling import STEP as LABELLING

STEPS = (
    """
    CREATE TABLE runs (id TEXT PRIMARY KEY, number INTEGER UNIQUE, command TEXT, arguments TEXT, fingerprint TEXT,
        versions TEXT, started TEXT, finished TEXT, status TEXT, roles TEXT, result TEXT);
    CREATE TABLE progress (run TEXT PRIMARY KEY, process INTEGER, beat TEXT, payload TEXT);
    CREATE TABLE steps (run TEXT, name TEXT, payload TEXT, crc INTEGER);
    CREATE INDEX steps_of_runs ON steps (run, name);

    CREATE TABLE calls (key TEXT, attempt INTEGER, run TEXT, stage TEXT, item TEXT, sent TEXT, ended TEXT,
        outcome TEXT, reply TEXT, PRIMARY KEY (key, attempt));
    CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT);
    CREATE TABLE spans (run TEXT, id TEXT, parent TEXT, name TEXT, kind TEXT, item TEXT, inputs TEXT, outputs TEXT,
        started TEXT, ms REAL, error TEXT);
    CREATE INDEX spans_of_items ON spans (run, item);

    CREATE TABLE labels (id TEXT PRIMARY KEY, time TEXT, annotator TEXT, text_hash TEXT, conversation TEXT, run TEXT,
        question TEXT, value TEXT, source TEXT, drawn TEXT, line TEXT);
    CREATE INDEX labels_of_texts ON labels (text_hash, question);

    CREATE TABLE extractions (run TEXT, conversation TEXT, summary TEXT, dropped INTEGER, outcome TEXT, detail TEXT,
        judge TEXT);
    CREATE INDEX extractions_of_runs ON extractions (run, conversation);
    CREATE TABLE reasons (run TEXT, id TEXT, conversation TEXT, polarity TEXT, text TEXT, quotes TEXT, source TEXT);
    CREATE INDEX reasons_of_runs ON reasons (run, conversation);
    CREATE TABLE rubrics (run TEXT, id TEXT, polarity TEXT, text TEXT, reason_ids TEXT, quotes TEXT, source TEXT);
    CREATE INDEX rubrics_of_runs ON rubrics (run, id);
    CREATE TABLE rubric_sets (run TEXT, id TEXT, payload TEXT);

    CREATE TABLE line_files (name TEXT PRIMARY KEY, size INTEGER);
    """,
    LABELLING,
)
"""All steps, in order. A step is SQL; a file is made by taking all of them."""


def step_forward(connection: sqlite3.Connection, where: str) -> int:
    """Take the steps that a file still needs, all or none; return how many it had behind it.

    Raises:
        WrongUse: A newer pollex made the file.
    """
    if (taken := _taken(connection)) == len(STEPS):
        return taken
    connection.execute("BEGIN IMMEDIATE")
    try:
        taken = _taken(connection)  # another process may have been quicker
        if taken > len(STEPS):
            raise WrongUse(
                f"the store has schema {taken}, and pollex {version('pollex')} knows schemas up to {len(STEPS)}",
                where=where,
                remedy="install the newer pollex, or give another folder with --store; the store was left as it is",
            )
        for step in STEPS[taken:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return taken


def _taken(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
