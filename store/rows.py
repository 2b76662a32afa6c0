"""What is kept: one class a table, a field a column, and how domain objects become rows and rows domain objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from pollex.agents.answers import Answer, Question, Unanswered
from pollex.agents.roles import Extraction
from pollex.agents.rubrics import Quote, Reason, Rubric, content_id
from pollex.conversations.model import Conversation
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


def conversation_rows(run: str, conversations: Sequence[Conversation], *, side: str = "") -> Iterator[Row]:
    """The conversations that a run uses; `side` is the part of the split that they are on: `train`, `test` or empty."""
    for one in conversations:
        yield TextRow(one.text_hash, packed([[turn.role, turn.content] for turn in one.turns]))
        yield ConversationRow(
            run=run,
            id=one.id,
            text_hash=one.text_hash,
            label=one.label.value,
            judge=one.judge,
            group=one.group,
            metadata=packed(one.metadata),
            side=side,
        )


def extraction_rows(run: str, conversation_id: str, found: Extraction | Unanswered) -> Iterator[Row]:
    """What an extractor found in a conversation, with its reasons, or why it found nothing."""
    if isinstance(found, Unanswered):
        yield ExtractionRow(run, conversation_id, outcome=found.outcome, detail=found.detail, judge=found.judge)
        return
    for reason in found.reasons:
        yield ReasonRow(
            run=run,
            id=reason.id,
            conversation=conversation_id,
            polarity=reason.polarity,
            text=reason.text,
            quotes=_packed_quotes(reason.quotes),
            source=reason.source,
        )
    yield ExtractionRow(run, conversation_id, summary=found.summary, dropped=found.dropped)


def rubric_rows(run: str, rubrics: Sequence[Rubric]) -> Iterator[Row]:
    """Rubrics with their provenance."""
    for one in rubrics:
        quotes = _packed_quotes(one.quotes)
        yield RubricRow(run, one.id, one.polarity, one.text, one.reason_ids, quotes, one.source)


def answer_rows(
    run: str,
    conversation: Conversation,
    questions: Sequence[Question],
    answers: Sequence[Answer | Unanswered],
    fingerprint: str,
) -> Iterator[Row]:
    """What a judge of that fingerprint answered to `questions`, one answer each, in their order."""
    for question, answer in zip(questions, answers, strict=True):
        row: dict[str, Any] = {
            "run": run,
            "conversation": conversation.id,
            "text_hash": conversation.text_hash,
            "question": question.id,
            "question_hash": question_hash(question),
            "fingerprint": fingerprint,
            "judge": answer.judge,
        }
        if isinstance(answer, Unanswered):
            yield AnswerRow(**row, outcome=answer.outcome, detail=answer.detail)
        else:
            yield AnswerRow(
                **row,
                probabilities=answer.probabilities,
                chosen=answer.chosen,
                source=answer.source,
                justification=answer.justification,
                turns=answer.turns,
            )


def question_hash(question: Question) -> str:
    """Twelve hex digits for the question's words and options: a re-worded question has another."""
    return content_id(question.text, *(f"{option.text}={option.value}" for option in question.options))


def read_conversation(row: Mapping[str, Any]) -> Conversation:
    """A row of conversations, with the turns of its text, as a conversation."""
    turns = [{"role": role, "content": content} for role, content in json.loads(row["turns"])]
    return Conversation.model_validate(
        {**{name: row[name] for name in ("id", "label", "judge", "group")}, "turns": turns}
        | {"metadata": json.loads(row["metadata"])}
    )


def read_reason(row: Mapping[str, Any]) -> Reason:
    """A row of reasons as a reason."""
    return Reason(
        id=row["id"],
        conversation_id=row["conversation"],
        polarity=row["polarity"],
        text=row["text"],
        quotes=_read_quotes(row["quotes"]),
        source=row["source"],
    )


def read_rubric(row: Mapping[str, Any]) -> Rubric:
    """A row of rubrics as a rubric."""
    return Rubric(
        id=row["id"],
        text=row["text"],
        polarity=row["polarity"],
        reason_ids=tuple(row["reason_ids"]),
        quotes=_read_quotes(row["quotes"]),
        source=row["source"],
    )


def read_answer(row: Mapping[str, Any]) -> Answer | Unanswered:
    """A row of answers as an answer, or as the reason why there is none."""
    if row["outcome"]:
        return Unanswered.model_construct(
            question_id=row["question"], outcome=row["outcome"], detail=row["detail"], judge=row["judge"]
        )
    # A run reads back as many answers as it has conversations times rubrics: validation would double the time.
    return Answer.model_construct(
        question_id=row["question"],
        probabilities=tuple(row["probabilities"]),
        chosen=row["chosen"],
        source=row["source"],
        justification=row["justification"],
        turns=tuple(row["turns"]),
        judge=row["judge"],
    )


def _packed_quotes(quotes: Sequence[Quote]) -> str:
    return packed([[quote.conversation_id, quote.turn, quote.text] for quote in quotes])


def _read_quotes(text: str) -> tuple[Quote, ...]:
    return tuple(Quote(conversation_id=of, turn=turn, text=said) for of, turn, said in json.loads(text))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    return [_encodable(one) for one in value] if isinstance(value, tuple) else value
