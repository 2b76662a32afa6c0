"""Tables of the browser's trials: repeated calls, drafts of rubric sets, and annotators' rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pollex.store.tables import Row

STEP = """
    CREATE TABLE replays (id TEXT PRIMARY KEY, time TEXT, run TEXT, conversation TEXT, payload TEXT);
    CREATE INDEX replays_of_conversations ON replays (run, conversation);
    CREATE TABLE drafts (id TEXT, version INTEGER, time TEXT, base TEXT, name TEXT, payload TEXT,
        PRIMARY KEY (id, version));
    CREATE TABLE annotators (id TEXT PRIMARY KEY, name TEXT, digest TEXT, time TEXT);
    CREATE TABLE revocations (annotator TEXT PRIMARY KEY, time TEXT);
    ALTER TABLE queues ADD COLUMN filter TEXT DEFAULT '';
    ALTER TABLE queues ADD COLUMN sheet TEXT DEFAULT '';
    ALTER TABLE queues ADD COLUMN repeat_share REAL DEFAULT 0;
    CREATE INDEX calls_of_runs ON calls (run)
"""


@dataclass(frozen=True)
class ReplayRow(Row):
    """A conversation asked about again outside any run, with other words or another judge.

    Attributes:
        payload: JSON of the answers before and after; see `services.rejudging`.
    """

    table: ClassVar = "replays"
    id: str
    time: str
    run: str
    conversation: str
    payload: str


@dataclass(frozen=True)
class DraftRow(Row):
    """A version of an edited rubric set; versions are only added.

    Attributes:
        base: Id of the set that it began with.
        payload: JSON of the entries; see `rubrics.edits`.
    """

    table: ClassVar = "drafts"
    id: str
    version: int
    time: str
    base: str
    name: str
    payload: str


@dataclass(frozen=True)
class AnnotatorRow(Row):
    """Somebody who may label and see nothing else.

    Attributes:
        digest: SHA-256 of their token.
    """

    table: ClassVar = "annotators"
    id: str
    name: str
    digest: str
    time: str


@dataclass(frozen=True)
class RevocationRow(Row):
    """The revocation of an annotator's token."""

    table: ClassVar = "revocations"
    annotator: str
    time: str
