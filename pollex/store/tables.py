"""What is kept: one class a table, a field a column."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from pollex.errors import StoreDamaged

_ROW = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """A fact. Lists become JSON in the database; lone surrogates, which it can't hold, become U+FFFD."""

    table: ClassVar[str]

    @property
    def values(self) -> list[Any]:
        """Values for `insert_of`."""
        return [_storable(value) for value in vars(self).values()]


@dataclass(frozen=True)
class ColumnRow(Row):
    """A fact that is kept in Parquet.

    Attributes:
        types: Every column with DuckDB's type for it.
    """

    types: ClassVar[dict[str, str]]
    run: str

    @property
    def json(self) -> str:
        """JSON text of the row.

        Raises:
            ValueError: It holds a number that JSON can't, NaN for example.
        """
        text = _ROW.encode(vars(self))
        if "\\ud" in text:
            return _ROW.encode({name: _encodable(value) for name, value in vars(self).items()})
        return text


@dataclass(frozen=True)
class TextRow(ColumnRow):
    """The turns of a conversation, JSON; kept once, by the first run that brings them."""

    table: ClassVar = "texts"
    types: ClassVar = dict.fromkeys(("run", "text_hash", "turns"), "VARCHAR")
    text_hash: str
    turns: str


@dataclass(frozen=True)
class ConversationRow(ColumnRow):
    """A conversation that a run used; `side` is the part of the split that it was on, or empty.

    Attributes:
        opening: How it begins, for lists.
        metadata: JSON.
    """

    table: ClassVar = "conversations"
    types: ClassVar = {
        **dict.fromkeys(("run", "id", "text_hash", "label", "judge", "group", "metadata", "side"), "VARCHAR"),
        "opening": "VARCHAR",
        "turn_count": "INTEGER",
    }
    id: str
    text_hash: str
    label: str
    judge: str | None
    group: str | None
    metadata: str
    side: str
    opening: str
    turn_count: int


@dataclass(frozen=True)
class AnswerRow(ColumnRow):
    """An answer, or why there is none: then `outcome` isn't empty and there are no probabilities.

    `question_hash` stands for the question's words and options, `fingerprint` for all else that the judge goes by.
    """

    table: ClassVar = "answers"
    types: ClassVar = {
        **dict.fromkeys(("run", "conversation", "text_hash", "question", "question_hash"), "VARCHAR"),
        **dict.fromkeys(("fingerprint", "judge", "source", "outcome", "detail", "justification"), "VARCHAR"),
        "probabilities": "DOUBLE[]",
        "chosen": "INTEGER",
        "turns": "INTEGER[]",
    }
    conversation: str
    text_hash: str
    question: str
    question_hash: str
    fingerprint: str
    judge: str
    probabilities: tuple[float, ...] | None = None
    chosen: int | None = None
    source: str = ""
    outcome: str = ""
    detail: str = ""
    justification: str = ""
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScoreRow(ColumnRow):
    """A conversation's score; where `outcome` isn't `scored`, it says why there are no figures."""

    table: ClassVar = "scores"
    types: ClassVar = {
        **dict.fromkeys(("run", "conversation", "label"), "VARCHAR"),
        **dict.fromkeys(("netsat", "probability"), "DOUBLE"),
        "confident": "BOOLEAN",
        "outcome": "VARCHAR",
    }
    conversation: str
    netsat: float | None
    label: str | None
    confident: bool | None
    probability: float | None
    outcome: str = "scored"


@dataclass(frozen=True)
class ExtractionRow(Row):
    """What became of one extraction; `outcome` is empty where it succeeded."""

    table: ClassVar = "extractions"
    run: str
    conversation: str
    summary: str = ""
    dropped: int = 0
    outcome: str = ""
    detail: str = ""
    judge: str = ""


@dataclass(frozen=True)
class ReasonRow(Row):
    """A reason that an extraction found."""

    table: ClassVar = "reasons"
    run: str
    id: str
    conversation: str
    polarity: str
    text: str
    quotes: str
    source: str


@dataclass(frozen=True)
class RubricRow(Row):
    """A rubric of a run's pool, with its provenance."""

    table: ClassVar = "rubrics"
    run: str
    id: str
    polarity: str
    text: str
    reason_ids: tuple[str, ...]
    quotes: str
    source: str


@dataclass(frozen=True)
class RubricSetRow(Row):
    """A rubric set that a run made."""

    table: ClassVar = "rubric_sets"
    run: str
    id: str
    payload: str


@dataclass(frozen=True)
class SpanRow(Row):
    """One node, role call or model call of a run. `inputs` and `outputs` are references, never contents."""

    table: ClassVar = "spans"
    run: str
    id: str
    parent: str | None
    name: str
    kind: str
    item: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    started: str
    ms: float
    error: str


def now() -> str:
    """Return the time, ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class LabelRow(Row):
    """What a person said about a conversation. Labels are only added: the last one of an annotator stands.

    Attributes:
        annotator: Who said it; empty where that is not known.
        question: Id of the question that was asked.
        value: The answer as JSON.
        source: `person`, or `adjudicated` where people differed.
        drawn: How the conversation came before the annotator: `doubtful`, `random`, `voluntary`, …
    """

    table: ClassVar = "labels"
    annotator: str
    text_hash: str
    conversation: str
    run: str
    question: str
    value: str
    source: str = "person"
    drawn: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    time: str = field(default_factory=now)


def insert_of(row: Row) -> str:
    """Return the statement that adds a row."""
    names = vars(row)
    return f"INSERT INTO {row.table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def packed(value: Any) -> str:
    """Return JSON text: as it is in UTF-8, escaped where that can't hold it; other types become their text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    if not text.isascii() and _LONE_SURROGATE.search(text):
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def unpacked(text: str) -> Any:
    """Return the values of a JSON text that the store wrote.

    Raises:
        StoreDamaged: It is none.
    """
    try:
        return json.loads(text)
    except ValueError as damage:
        raise damaged("", f"no JSON any more: {damage}") from damage


def damaged(where: str, why: str) -> StoreDamaged:
    """Return the error for what can't be read as it was written."""
    return StoreDamaged(
        f"the store is damaged ({why})",
        where=where,
        remedy="`pollex doctor --rebuild` makes it anew from what was paid for and what people said; nothing is paid "
        "again",
    )


def _storable(value: Any) -> Any:
    if isinstance(value, tuple):
        return packed(value)
    return _encodable(value)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    return [_encodable(one) for one in value] if isinstance(value, tuple) else value
