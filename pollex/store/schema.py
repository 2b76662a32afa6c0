"""The database's schema as forward migrations, counted in `PRAGMA user_version`.

Never edit a step that was released: add the next. Times are ISO 8601 in UTC. Columns called payload, arguments,
fingerprint, versions, roles, result, inputs, outputs and value hold JSON. What a table's columns mean, its class in
`tables` says.
"""

from __future__ import annotations

import sqlite3
from importlib.metadata import version

from pollex.errors import WrongUse
from pollex.store.desk import LISTS, SEEN, SOURCES, TALKS
from pollex.store.desk import STEP as DESK

STEPS = (
    """
    CREATE TABLE runs (id TEXT PRIMARY KEY, number INTEGER UNIQUE, command TEXT, arguments TEXT, fingerprint TEXT,
        versions TEXT, started TEXT, finished TEXT, status TEXT, roles TEXT, result TEXT);
    CREATE TABLE progress (run TEXT PRIMARY KEY, process INTEGER, beat TEXT, payload TEXT);
    CREATE TABLE facts (run TEXT, kind TEXT, id TEXT, payload TEXT, crc INTEGER);
    CREATE INDEX facts_of_runs ON facts (run, kind, id);

    CREATE TABLE calls (key TEXT, attempt INTEGER, run TEXT, stage TEXT, item TEXT, sent TEXT, ended TEXT,
        outcome TEXT, reply TEXT, PRIMARY KEY (key, attempt));
    CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT);
    CREATE TABLE spans (run TEXT, id TEXT, parent TEXT, name TEXT, kind TEXT, item TEXT, inputs TEXT, outputs TEXT,
        started TEXT, ms REAL, error TEXT);
    CREATE INDEX spans_of_items ON spans (run, item);

    CREATE TABLE labels (annotator TEXT, text_hash TEXT, conversation TEXT, run TEXT, question TEXT, value TEXT,
        source TEXT, drawn TEXT, id TEXT PRIMARY KEY, time TEXT);
    CREATE INDEX labels_of_texts ON labels (text_hash, question);
    CREATE TABLE queues (id TEXT PRIMARY KEY, name TEXT, kind TEXT, run TEXT, random_share REAL, overlap INTEGER,
        seed INTEGER, time TEXT);
    CREATE TABLE leases (id TEXT PRIMARY KEY, queue TEXT, text_hash TEXT, conversation TEXT, annotator TEXT, drawn TEXT,
        time TEXT, until TEXT);
    CREATE INDEX leases_of_queues ON leases (queue, text_hash);
    CREATE TABLE sheets (label TEXT PRIMARY KEY, lease TEXT, queue TEXT, skip TEXT, comment TEXT, replaces TEXT);
    CREATE INDEX sheets_of_leases ON sheets (lease);

    CREATE TABLE line_files (name TEXT PRIMARY KEY, size INTEGER);
    """,
    DESK,
    TALKS,
    """
    CREATE TABLE batches (digest TEXT PRIMARY KEY, provider TEXT, place TEXT, model TEXT, intended REAL, size INTEGER,
        id TEXT, closed INTEGER DEFAULT 0);
    CREATE TABLE batched (digest TEXT, key TEXT, attempt INTEGER, PRIMARY KEY (digest, key)) WITHOUT ROWID
    """,
    """
    CREATE TABLE originals (conversation TEXT, text_hash TEXT, sealed TEXT);
    CREATE INDEX originals_of_conversations ON originals (conversation)
    """,
    LISTS,
    SEEN,
    """
    ALTER TABLE calls ADD COLUMN holder TEXT;
    ALTER TABLE calls ADD COLUMN until REAL
    """,
    SOURCES,
)
"""All steps, in order. A step is SQL; a file is made by taking all of them."""


def step_forward(connection: sqlite3.Connection, where: str) -> None:
    """Take the steps that a file still needs, all or none.

    Raises:
        WrongUse: A newer pollex made the file.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (taken,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been quicker
        if taken > len(STEPS):
            raise WrongUse(
                f"the store has schema {taken}, and pollex {version('pollex')} knows schemas up to {len(STEPS)}",
                where=where,
                remedy="the store was left as it is: install the newer pollex, or give another folder",
                option="store",
            )
        for statement in ";".join(STEPS[taken:]).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it itself where the disk is full
            connection.execute("ROLLBACK")
        raise
