"""Queues of conversations to label, and who has which: rows beside the labels themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pollex.store.tables import Row

STEP = """
    CREATE TABLE queues (id TEXT PRIMARY KEY, name TEXT, kind TEXT, run TEXT, random_share REAL, overlap INTEGER,
        seed INTEGER, time TEXT);
    CREATE TABLE leases (id TEXT PRIMARY KEY, queue TEXT, text_hash TEXT, conversation TEXT, annotator TEXT, drawn TEXT,
        time TEXT, until TEXT);
    CREATE INDEX leases_of_queues ON leases (queue, text_hash);
    CREATE TABLE sheets (label TEXT PRIMARY KEY, lease TEXT, queue TEXT, skip TEXT, comment TEXT, replaces TEXT);
    CREATE INDEX sheets_of_leases ON sheets (lease);
"""


@dataclass(frozen=True)
class QueueRow(Row):
    """Conversations of a run that people are to label.

    Attributes:
        kind: What comes first: `unsure`, `window`, `differs`, or `random`.
        random_share: Share that is drawn at random whatever the kind; only these say how well a rubric set does.
        overlap: How many people label each conversation.
    """

    table: ClassVar = "queues"
    id: str
    name: str
    kind: str
    run: str
    random_share: float
    overlap: int
    seed: int
    time: str


@dataclass(frozen=True)
class LeaseRow(Row):
    """A conversation that an annotator has before them, until the lease ends."""

    table: ClassVar = "leases"
    id: str
    queue: str
    text_hash: str
    conversation: str
    annotator: str
    drawn: str
    time: str
    until: str


@dataclass(frozen=True)
class SheetRow(Row):
    """What belongs to a label beside its value.

    Attributes:
        skip: Why there is no value; empty where there is one.
        replaces: The label that it changes; empty for a first answer.
    """

    table: ClassVar = "sheets"
    label: str
    lease: str
    queue: str
    skip: str
    comment: str
    replaces: str
