"""The database's tables. Those of rows have a column for each field of their class.

Times are ISO 8601 in UTC. Columns called payload, arguments, fingerprint, versions, roles, result, inputs, outputs and
value hold JSON.
"""

from __future__ import annotations

import sqlite3
from dataclasses import fields

from pollex.store import desk, tables
from pollex.store.tables import Row

VERSION = 10
"""Counted up by whoever changes a table: `repair.rebuild` brings older databases over."""

ROWS: dict[type[Row], str] = {
    tables.FactRow: "crc INTEGER",
    tables.SpanRow: "",
    tables.LabelRow: "PRIMARY KEY (id)",
    tables.QueueRow: "PRIMARY KEY (id)",
    tables.LeaseRow: "PRIMARY KEY (id)",
    tables.SheetRow: "PRIMARY KEY (label)",
    tables.OriginalRow: "",
    desk.ChosenRow: "PRIMARY KEY (queue, conversation)",
    desk.ReplayRow: "PRIMARY KEY (id)",
    desk.DraftRow: "PRIMARY KEY (id, version)",
    desk.AnnotatorRow: "PRIMARY KEY (id)",
    desk.RevocationRow: "PRIMARY KEY (annotator)",
    desk.StudyRow: "",
    desk.TalkRow: "PRIMARY KEY (id), UNIQUE (study, number), UNIQUE (study, annotator)",
    desk.TalkTurnRow: "",
    desk.TalkAnswerRow: "",
    desk.TalkEndRow: "",
}
"""What a table has beside its fields: keys, and a checksum."""

OTHERS = """
    CREATE TABLE runs (id TEXT PRIMARY KEY, number INTEGER UNIQUE, command TEXT, arguments TEXT, fingerprint TEXT,
        versions TEXT, started TEXT, finished TEXT, status TEXT, roles TEXT, result TEXT);
    CREATE TABLE progress (run TEXT PRIMARY KEY, process INTEGER, beat TEXT, payload TEXT);
    CREATE TABLE calls (key TEXT, attempt INTEGER, run TEXT, stage TEXT, item TEXT, sent TEXT, ended TEXT,
        outcome TEXT, reply TEXT, holder TEXT, until REAL, PRIMARY KEY (key, attempt));
    CREATE TABLE requests (key TEXT PRIMARY KEY, body TEXT);
    CREATE TABLE batches (digest TEXT PRIMARY KEY, provider TEXT, place TEXT, model TEXT, intended REAL, size INTEGER,
        id TEXT, closed INTEGER DEFAULT 0);
    CREATE TABLE batched (digest TEXT, key TEXT, attempt INTEGER, PRIMARY KEY (digest, key));
    CREATE INDEX calls_of_runs ON calls (run);
    CREATE INDEX facts_of_runs ON facts (run, kind, id);
    CREATE INDEX spans_of_items ON spans (run, item);
    CREATE INDEX labels_of_texts ON labels (text_hash, question);
    CREATE INDEX leases_of_queues ON leases (queue, text_hash);
    CREATE INDEX sheets_of_leases ON sheets (lease);
    CREATE INDEX originals_of_conversations ON originals (conversation);
    CREATE INDEX replays_of_conversations ON replays (run, conversation);
    CREATE INDEX turns_of_talks ON talk_turns (talk);
    CREATE INDEX answers_of_talks ON talk_answers (talk);
    CREATE INDEX ends_of_talks ON talk_ends (talk)
"""

_TYPES = {"int": "INTEGER", "bool": "INTEGER", "float": "REAL"}


def make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables in a database that has none, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # another process may have been quicker
            for statement in [*(_table(kind, more) for kind, more in ROWS.items()), *OTHERS.split(";")]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it itself where the disk is full
            connection.execute("ROLLBACK")
        raise


def _table(kind: type[Row], more: str) -> str:
    columns = [f"{each.name} {_TYPES.get(str(each.type).removesuffix(' | None'), 'TEXT')}" for each in fields(kind)]
    return f"CREATE TABLE {kind.table} ({', '.join([*columns, *filter(None, [more])])})"
