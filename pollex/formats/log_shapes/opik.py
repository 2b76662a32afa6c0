"""Opik: traces and threads with their feedback, from its interface and from its command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, Target, moment
from pollex.formats.log_shapes.exports import Export, Fields, WrongFile, facts, inside, objects, required, text
from pollex.formats.log_shapes.payloads import answered, asked


def _trace(fields: Fields) -> Iterator[Piece]:
    trace, error = required(fields, "id"), inside(fields.get("error_info"))
    session = text(fields.get("thread_id"))
    before, after = asked(fields.get("input")), answered(fields.get("output"))
    metadata = inside(fields.get("metadata"))
    yield Call(
        *(trace, trace, None, session, moment(fields.get("start_time"))),
        before=before.turns if before else None,
        after=after.turns if after else None,
        history=bool(before and before.history),
        error=str(error.get("message") or "failed") if error else "",
        facts=facts(user=text(metadata.get("user") or metadata.get("user_id")), tags=fields.get("tags")),
    )
    yield from _scores(fields.get("feedback_scores"), "trace", trace)


def _scores(listed: object, target: Target, id_: str) -> Iterator[Score]:
    """Yield scores; for categories the label counts."""
    for score in objects(listed):
        value = score.get("category_name") or score.get("value")
        if value is not None:
            yield Score(
                *(target, id_, value, str(score.get("name") or ""), str(score.get("source") or "")),
                comment=str(score.get("reason") or ""),
                person=text(score.get("created_by")),
                at=moment(score.get("last_updated_at")),
            )


def _file(fields: Fields) -> Iterator[Piece]:
    """Yield a trace with its spans, as the command line writes it."""
    trace: Mapping[str, Any] = inside(fields.get("trace"))
    yield from _trace(trace)
    for span in objects(fields.get("spans")):
        before, after = asked(span.get("input")), answered(span.get("output"))
        model = span.get("type") == "llm"
        parent = text(span.get("parent_span_id")) or required(trace, "id")
        yield Call(
            *(required(trace, "id"), required(span, "id"), parent, None, moment(span.get("start_time"))),
            before=before.turns if before and model else None,
            after=after.turns if after and model else None,
            model=model,
            history=bool(before and before.history),
        )


def _thread(fields: Fields) -> Iterator[Piece]:
    yield from _scores(fields.get("feedback_scores"), "conversation", required(fields, "id", "thread_id"))


def _refuse(_: Fields) -> Iterator[Piece]:
    what = "Opik's CSV holds Python's writing of objects, not JSON"
    raise WrongFile(what, remedy="export as JSON: `opik export ... --format json`")


EXPORTS = (
    Export(
        name="Opik traces",
        signs=(
            ("thread_id", "input", "output", "feedback_scores", "start_time"),
            ("input", "output", "feedback_scores", "span_count"),
        ),
        read=_trace,
        example=(
            {
                "id": "t",
                "thread_id": "a",
                "start_time": "2026-01-01",
                "input": {"input": "Hello"},
                "output": {"output": "Good day"},
                "feedback_scores": [{"name": "User feedback", "value": 1, "source": "ui"}],
            },
        ),
    ),
    Export(name="Opik trace file", signs=(("trace.id", "spans"),), read=_file),
    Export(name="Opik threads", signs=(("first_message", "last_message", "feedback_scores"),), read=_thread),
    Export(
        name="Opik CSV",
        signs=(("trace_id", "trace_input_messages"), ("trace_id", "trace_thread_id", "trace_name")),
        read=_refuse,
    ),
)
