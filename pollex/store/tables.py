"""What is kept: one class a table, a field a column."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from pollex.store.journal import Entry

_ROW = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """A fact. `journaled` facts reach the journal before the database."""

    table: ClassVar[str]
    journaled: ClassVar[bool] = False

    @property
    def entry(self) -> Entry:
        """As JSON text. What no UTF-8 can hold, lone surrogates, becomes U+FFFD, but survives in columns of JSON."""
        text = _ROW.encode(vars(self))
        if "\\ud" in text:
            text = _ROW.encode({name: _encodable(value) for name, value in vars(self).items()})
        return Entry(self.table, text)


@dataclass(frozen=True)
class TextRow(Row):
    """The turns of a conversation, once for all runs that use them."""

    table: ClassVar = "texts"
    text_hash: str
    turns: str


@dataclass(frozen=True)
class ConversationRow(Row):
    """A conversation that a run used; `side` is the part of the split that it was on, or empty."""

    table: ClassVar = "conversations"
    run: str
    id: str
    text_hash: str
    label: str
    judge: str | None
    group: str | None
    metadata: str
    side: str


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
class AnswerRow(Row):
    """An answer, or why there is none: then `outcome` isn't empty and there are no probabilities.

    `question_hash` stands for the question's words and options, `fingerprint` for all else that the judge goes by.
    """

    table: ClassVar = "answers"
    run: str
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
class ScoreRow(Row):
    """A conversation's score: none of the figures where it could not be scored."""

    table: ClassVar = "scores"
    run: str
    conversation: str
    netsat: float | None
    label: str | None
    confident: bool | None
    probability: float | None


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


@dataclass(frozen=True)
class RunRow(Row):
    """A run as it was started."""

    table: ClassVar = "runs"
    journaled: ClassVar = True
    id: str
    number: int
    command: str
    arguments: str
    fingerprint: str
    versions: str
    started: str


@dataclass(frozen=True)
class RunEventRow(Row):
    """A change of a run's status; the last one stands."""

    table: ClassVar = "run_events"
    journaled: ClassVar = True
    run: str
    status: str
    time: str
    roles: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class StepRow(Row):
    """What a step that is done once in a run came to, so that a resume need not do it again."""

    table: ClassVar = "steps"
    journaled: ClassVar = True
    run: str
    name: str
    payload: str


@dataclass(frozen=True)
class LedgerRow(Row):
    """A call that was about to be made (`intent`) or what it brought (`result`)."""

    table: ClassVar = "ledger"
    journaled: ClassVar = True
    key: str
    kind: str
    attempt: int
    time: str
    payload: str


ROWS: tuple[type[Row], ...] = (
    TextRow,
    ConversationRow,
    ExtractionRow,
    ReasonRow,
    RubricRow,
    RubricSetRow,
    AnswerRow,
    ScoreRow,
    SpanRow,
    RunRow,
    RunEventRow,
    StepRow,
    LedgerRow,
)
JOURNALED = tuple(row.table for row in ROWS if row.journaled)


def now() -> str:
    """The time, ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def packed(value: Any) -> str:
    """JSON text for a column: as it is in UTF-8, escaped where that can't hold it; other types become their text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    if _LONE_SURROGATE.search(text):
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    return [_encodable(one) for one in value] if isinstance(value, tuple) else value
