"""The tables of the store, one class each with a field for each column."""

from __future__ import annotations

import json
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar, TypeVar

from pollex.errors import StoreDamaged
from pollex.text import replace_nan_by_none

_SQL_TYPE_BY_ANNOTATION = {
    "str": "VARCHAR",
    "int": "INTEGER",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "tuple[float, ...]": "DOUBLE[]",
    "tuple[int, ...]": "INTEGER[]",
}
_CHECKED_LINE_REGEX = re.compile(r'\{"crc":"([0-9a-f]{8})",(.*)', re.DOTALL)
_LONE_SURROGATE_REGEX = re.compile("[\ud800-\udfff]")


def name_field_type(field: Field[Any]) -> str:
    """Name a field's type without None, whether its annotation is deferred or not."""
    return (field.type.__name__ if type(field.type) is type else str(field.type)).removesuffix(
        " | None"
    )


@dataclass(frozen=True)
class Row:
    """A row of a table; lists become JSON, lone surrogates U+FFFD.

    Attributes:
        durable: Whether it is on the disk, not just handed to the system, when its commit returns.
    """

    table: ClassVar[str]
    durable: ClassVar = False

    @property
    def values(self) -> list[object]:
        """Values for `insert_of`."""
        return [_encode_storable(value) for value in vars(self).values()]


@dataclass(frozen=True)
class ColumnRow(Row):
    """A fact that is kept in Parquet."""

    run: str

    @classmethod
    def types(cls) -> dict[str, str]:
        """Return every column with DuckDB's type for it."""
        types: dict[str, str] = {}
        for column in fields(cls):
            types[column.name] = _SQL_TYPE_BY_ANNOTATION[name_field_type(column)]
        return types

    @property
    def cells(self) -> tuple[object, ...]:
        """The values of its columns.

        Raises:
            ValueError: One is NaN or infinite: missing is None.
        """
        cells = tuple(map(_make_encodable, vars(self).values()))
        for cell in cells:
            if any(
                isinstance(number, float) and not isfinite(number)
                for number in (cell if isinstance(cell, tuple) else [cell])
            ):
                raise ValueError(f"{self.table} can't keep {cell}")

        return cells


@dataclass(frozen=True)
class TextRow(ColumnRow):
    """The turns of a conversation, JSON; kept once, by the first run that brings them."""

    table: ClassVar = "texts"
    text_hash: str
    turns: str


@dataclass(frozen=True)
class ConversationRow(ColumnRow):
    """A conversation of a run, with its side of the split or none.

    Attributes:
        opening: Its beginning, for lists.
        metadata: JSON.
        flags: What is odd about the text, joined by spaces.
        feedback: JSON of what was written of it; empty where nothing was.
    """

    table: ClassVar = "conversations"
    id: str
    text_hash: str
    label: str
    judge: str | None
    group: str | None
    metadata: str
    side: str
    opening: str
    turn_count: int
    flags: str = ""
    feedback: str = ""


@dataclass(frozen=True)
class AnswerRow(ColumnRow):
    """An answer, or a non-empty `outcome` without probabilities.

    `question_hash` covers the question's words and options, `fingerprint` everything else that who
    answered depends on;
    `asked_in` is the earlier run that asked, where the answer was known already.
    """

    table: ClassVar = "answers"
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
    asked_in: str = ""


@dataclass(frozen=True)
class ScoreRow(ColumnRow):
    """A conversation's score; where `outcome` isn't `scored`, it says why there are no figures."""

    table: ClassVar = "scores"
    conversation: str
    netsat: float | None
    label: str | None
    confident: bool | None
    probability: float | None
    outcome: str = "scored"


@dataclass(frozen=True)
class FactRow(Row):
    """A result of a run, such as an extraction or a step; the last counts.

    Attributes:
        kind: `extraction`, `rubric`, `rubric_set`, `arrays` or `step`.
        id: Of the conversation, the rubric, the set or the arrays; a step's name.
        payload: JSON.
    """

    table: ClassVar = "facts"
    durable: ClassVar = True
    run: str
    kind: str
    id: str
    payload: str

    @property
    def values(self) -> list[object]:
        """Values for `insert_of`, with a checksum."""
        return [*super().values, zlib.crc32(self.payload.encode())]


@dataclass(frozen=True)
class SpanRow(Row):
    """One node, role call or model call; `inputs` and `outputs` are references."""

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


def format_current_time() -> str:
    """Return the time, ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class LabelRow(Row):
    """A person's answer about a conversation; of several the last one counts.

    Attributes:
        annotator: Name of the person; empty if unknown.
        question: Id of the question that was asked.
        value: The answer as JSON.
        source: `person`, or `adjudicated` if annotators differed.
        drawn: How the conversation was selected: `doubtful`, `random`, `voluntary`, …
    """

    table: ClassVar = "labels"
    durable: ClassVar = True
    annotator: str
    text_hash: str
    conversation: str
    run: str
    question: str
    value: str
    source: str = "person"
    drawn: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    time: str = field(default_factory=format_current_time)


@dataclass(frozen=True)
class QueueRow(Row):
    """Conversations of a run that people are to label.

    Attributes:
        kind: What comes first: `telling`, `unsure`, `window`, `differs`, or `random`; or what is in
            it: `filter`, `chosen`.
        random_share: Share that is drawn at random whatever the kind; only these say how well a
            rubric set does.
        overlap: How many people label each conversation.
        filter: Query of the list whose conversations are in it; empty for those of the kind.
        sheet: What is asked: empty for a thumb, else questions as JSON.
        repeat_share: Share of conversations that the same person gets once more.
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
    filter: str = ""
    sheet: str = ""
    repeat_share: float = 0.0


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
class LabelSheetRow(Row):
    """Details of a label besides its value.

    Attributes:
        skip: Why there is no value; empty where there is one.
        replaces: The label that it changes; empty for a first answer.
        shown_ms: How long the page was open, where a script counted it.
        took_ms: From when the conversation was given out to the answer.
        saw: What the page showed beside the conversation: `prediction`, `votes`, `others`.
    """

    table: ClassVar = "sheets"
    label: str
    lease: str = ""
    queue: str = ""
    skip: str = ""
    comment: str = ""
    replaces: str = ""
    shown_ms: float | None = None
    took_ms: float | None = None
    saw: tuple[str, ...] = ()


@dataclass(frozen=True)
class OriginalRow(Row):
    """What the placeholders of one conversation stand for, sealed; see `originals`."""

    table: ClassVar = "originals"
    conversation: str
    text_hash: str
    sealed: str


@lru_cache(maxsize=64)
def make_insert_statement(table: str, columns: int) -> str:
    """Return the insert statement of a table."""
    return f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"


RowType = TypeVar("RowType")


def iterate_rows_without_texts(rows: Iterable[RowType]) -> Iterator[RowType]:
    """Yield rows without what was said in conversations."""
    for row in rows:
        if isinstance(row, ConversationRow):
            yield replace(row, opening="")
        elif not isinstance(row, TextRow):
            yield row


def dump_json(value: object) -> str:
    """Convert a value to JSON text, escaped if UTF-8 can't encode it; a number that JSON doesn't have becomes null."""
    try:
        text = json.dumps(
            value,
            ensure_ascii=False,
            separators=(",", ":"),
            default=str,
            allow_nan=False,
        )
    except ValueError:
        value = replace_nan_by_none(value)
        text = json.dumps(
            value,
            ensure_ascii=False,
            separators=(",", ":"),
            default=str,
        )

    if not text.isascii() and _LONE_SURROGATE_REGEX.search(text):
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def load_json(text: str) -> Any:
    """Return the values of a JSON text that the store wrote.

    Raises:
        StoreDamaged: It is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as damage:
        raise make_damage_error("", f"no JSON any more: {damage}") from damage


def write_checked_line(values: Mapping[str, object]) -> str:
    """Return values as a JSON object whose first member is the CRC-32 of the others."""
    body = dump_json(values)[1:]
    return f'{{"crc":"{zlib.crc32(body.encode()):08x}",{body}'


def read_checked_line(line: str) -> dict[str, Any] | None:
    """Return the values that `write_checked_line` was given; None where it was changed since."""
    match = _CHECKED_LINE_REGEX.fullmatch(line)
    if match is None or zlib.crc32(match[2].encode("utf-8", "surrogatepass")) != int(match[1], 16):
        return None

    values: dict[str, object] = load_json("{" + match[2])
    return values


def make_damage_error(where: str, why: str) -> StoreDamaged:
    """Return the error for what can't be read as it was written."""
    return StoreDamaged(
        f"the store is damaged ({why})",
        where=where,
        hint="`pollex doctor --rebuild` takes out what can be read, the rest from the backup, and says what is lost",
    )


def _encode_storable(value: object) -> object:
    if isinstance(value, tuple):
        return dump_json(value) if value else "[]"
    return _make_encodable(value)


def _make_encodable(value: object) -> object:
    if isinstance(value, str):
        if value.isascii():
            return value
        return _LONE_SURROGATE_REGEX.sub("\ufffd", value)
    if isinstance(value, tuple):
        return tuple(map(_make_encodable, value))
    return value


@dataclass(frozen=True)
class ChosenConversationRow(Row):
    """A conversation that somebody put into a queue."""

    table: ClassVar = "chosen"
    queue: str
    text_hash: str
    conversation: str
    time: str


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
    """Somebody whose token opens one page and nothing else.

    Attributes:
        digest: Of their token, under the seal of the machine that made it (`seal.py`).
        page: Path of the queue or study that it opens.
    """

    table: ClassVar = "annotators"
    id: str
    name: str
    digest: str
    time: str
    page: str


@dataclass(frozen=True)
class RevocationRow(Row):
    """The revocation of an annotator's token."""

    table: ClassVar = "revocations"
    annotator: str
    time: str
