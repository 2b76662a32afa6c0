"""MLflow: traces with their assessments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, WrongFile, at, facts, inside, objects, required, text
from pollex.formats.log_shapes.otlp import attributes_of, hexadecimal
from pollex.formats.log_shapes.payloads import opened
from pollex.formats.log_shapes.spans import Span, call_of

SESSION, USER = "mlflow.trace.session", "mlflow.trace.user"


def read_trace(fields: Fields) -> Iterator[Piece]:
    info = inside(fields.get("info"))
    trace = required(info, "trace_id", "request_id")
    metadata = inside(info.get("trace_metadata", info.get("request_metadata")))
    session, user = text(metadata.get(SESSION)), text(metadata.get(USER))
    spans = opened(at(fields, "data.spans"))
    if not isinstance(spans, list):
        what = "the traces have no spans"
        raise WrongFile(what, remedy="write whole traces: trace.to_json(), or `mlflow traces search --output json`")
    begun = info.get("request_time") or info.get("timestamp_ms")
    for span in spans:
        if isinstance(span, Mapping):
            yield _span(span, trace, session, user, begun)
    yield from _assessments(info, trace)


def _span(span: Mapping[str, Any], trace: str, session: str | None, user: str | None, begun: object) -> Call:
    """Make a call of a span; the root has the trace's time.

    Older versions give times of spans in other units.
    """
    span = {_snake(name): value for name, value in span.items()}
    parent = hexadecimal(span.get("parent_span_id") or span.get("parent_id"))
    written = attributes_of(opened(span.get("attributes")))
    have = {name: opened(value) for name, value in written.items() if value != "null"}
    status = inside(span.get("status")) or {"code": span.get("status_code")}
    failed = str(status.get("code")) in ("STATUS_CODE_ERROR", "ERROR", "2")
    error = str(status.get("message") or "failed") if failed else ""
    when = span.get("start_time_unix_nano") or span.get("start_time_ns") or span.get("start_time") or begun
    span_id = hexadecimal(span.get("span_id") or at(span, "context.span_id")) or trace
    call = call_of(Span(trace, span_id, parent, when, have, error))
    return call._replace(session=session, facts=facts(user=user, **call.facts))


def _snake(name: str) -> str:
    """Convert a name from camel case to snake case."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _assessments(info: Fields, trace: str) -> Iterator[Score]:
    for one in objects(info.get("assessments")):
        if one.get("valid") is False:
            continue
        feedback = inside(one.get("feedback"))
        value = feedback.get("value")
        if value is None:
            continue
        source = inside(one.get("source"))
        session = text(inside(one.get("metadata")).get(SESSION))
        target = ("conversation", session) if session else ("trace", trace)
        yield Score(
            *(*target, value, required(one, "assessment_name", "name")),  # type: ignore[arg-type]
            source=str(source.get("source_type") or ""),
            comment=one.get("rationale"),
            person=text(source.get("source_id")),
            at=moment(one.get("last_update_time")),
            key=text(one.get("assessment_id")),
        )


def read_row(fields: Fields) -> Iterator[Piece]:
    """Yield the trace in a row of the data frame, whole as JSON text or column by column."""
    if isinstance(opened(fields.get("spans")), str) and not isinstance(opened(fields.get("trace")), Mapping):
        what = "the cells hold Python's writing of objects, not JSON"
        raise WrongFile(what, remedy="write each trace with trace.to_json(), one trace a line")
    trace = opened(fields.get("trace"))
    yield from read_trace(trace if isinstance(trace, Mapping) else {"info": fields, "data": fields})
