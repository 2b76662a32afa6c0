"""Spans of OpenTelemetry as collectors write them, and as Phoenix and MLflow keep them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, Talk, Target, Words, moment
from pollex.formats.log_shapes.exports import Fields, WrongFile, at, facts, inside, objects, required, text, under
from pollex.formats.log_shapes.payloads import answered, asked, flat, opened, sides
from pollex.formats.log_shapes.spans import (
    ANSWERS,
    SESSION_NAMES,
    USER_NAMES,
    Span,
    call_of,
    messages_of,
    turns_of_event,
)

_HEX = re.compile(r"[0-9a-fA-F]{16,32}")
_INT = re.compile(r"-?[0-9]{1,19}")
_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")
EVALUATION = "gen_ai.evaluation.result"
DETAILS = "gen_ai.client.inference.operation.details"


def _key(fields: Mapping[str, Any], camel: str) -> Any:
    """Return a field in the spelling of protobuf's JSON or of Python."""
    if camel in fields:
        return fields[camel]
    return fields.get(re.sub(r"([A-Z])", lambda found: "_" + found.group(1).lower(), camel))


def hexadecimal(id_: object) -> str | None:
    """Convert a span's or trace's id to hexadecimal, from base64 if needed."""
    if not isinstance(id_, str) or not id_:
        return None
    id_ = id_.removeprefix("0x")
    if _HEX.fullmatch(id_):
        return id_.lower()
    try:
        raw = base64.b64decode(id_, validate=True)
    except (binascii.Error, ValueError):
        return id_
    return raw.hex() if len(raw) in (8, 16) else id_


def value_of(value: object) -> Any:
    """Return the value of an attribute."""
    if not isinstance(value, Mapping):
        return value
    for name, inner in value.items():
        kind = name.replace("_", "").lower()
        if inner is None:
            continue
        if kind == "arrayvalue":
            return [value_of(one) for one in objects(inner.get("values"))] if isinstance(inner, Mapping) else []
        if kind == "kvlistvalue":
            return attributes_of(inner.get("values")) if isinstance(inner, Mapping) else {}
        if kind == "intvalue":
            return int(inner) if _INT.fullmatch(str(inner)) else inner
        return inner
    return None


def attributes_of(listed: object) -> dict[str, Any]:
    """Return attributes as one object."""
    if isinstance(listed, Mapping):
        return dict(listed)
    pairs = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return {str(one["key"]): value_of(one.get("value")) for one in pairs if "key" in one}


def _inside(fields: Fields, *names: str) -> Iterator[Mapping[str, Any]]:
    """Yield all objects under nested lists."""
    level: list[Mapping[str, Any]] = [fields]
    for name in names:
        level = [one for outer in level for one in objects(_key(outer, name))]
    yield from level


def read_otlp(fields: Fields) -> Iterator[Piece]:
    for span in _inside(fields, "resourceSpans", "scopeSpans", "spans"):
        yield from read_otlp_span(span)
    for record in _inside(fields, "resourceLogs", "scopeLogs", "logRecords"):
        yield from _record(record)


def read_otlp_span(fields: Mapping[str, Any]) -> Iterator[Piece]:
    trace, span = hexadecimal(_key(fields, "traceId")), hexadecimal(_key(fields, "spanId"))
    if not trace or not span:
        return
    status = fields.get("status")
    status = status if isinstance(status, Mapping) else {}
    error = str(status.get("message") or "failed") if status.get("code") in _FAILED else ""
    have = attributes_of(fields.get("attributes"))
    begun = _key(fields, "startTimeUnixNano")
    _require_here(have)
    call = call_of(Span(trace, span, hexadecimal(_key(fields, "parentSpanId")), begun, have, error))
    yield call._replace(beside={**have, **_of_events(fields)})
    yield from events_in(fields, trace, span, begun)


def _of_events(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an application's own events, among which may be the label."""
    own = [event for event in objects(fields.get("events")) if not str(event.get("name")).startswith("gen_ai.")]
    pairs = ((event, attributes_of(event.get("attributes"))) for event in own)
    return {f"{event.get('name')}.{name}": value for event, have in pairs for name, value in have.items()}


def events_in(fields: Mapping[str, Any], trace: str, span: str, begun: object) -> Iterator[Piece]:
    """Yield the words and scores of a span's events."""
    for event in objects(fields.get("events")):
        when = _key(event, "timeUnixNano") or event.get("timestamp") or begun
        yield from _event(str(event.get("name")), trace, span, attributes_of(event.get("attributes")), None, when)


def _require_here(have: Mapping[str, Any]) -> None:
    """Refuse spans whose messages were uploaded, so that only their addresses are here."""
    if any(name.endswith(".messages_ref") for name in have) and "gen_ai.input.messages" not in have:
        what = "the messages were uploaded elsewhere; the spans have only their addresses"
        raise WrongFile(what, remedy="record them in the spans: OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK unset")


def _record(fields: Mapping[str, Any]) -> Iterator[Piece]:
    have = attributes_of(fields.get("attributes"))
    name = str(_key(fields, "eventName") or have.get("event.name") or "")
    trace, span = hexadecimal(_key(fields, "traceId")) or "", hexadecimal(_key(fields, "spanId")) or ""
    when = _key(fields, "timeUnixNano") or _key(fields, "observedTimeUnixNano")
    yield from _event(name, trace, span, have, value_of(fields.get("body")), when)


def _event(name: str, trace: str, span: str, have: Mapping[str, Any], body: object, when: object) -> Iterator[Piece]:
    if name == EVALUATION:
        yield from _score(trace, span, have, when)
    elif name == DETAILS and (said := messages_of(have)):
        before, after = said
        yield Words(trace, span, before.turns if before else (), after.turns if after else (), whole=True)
    elif name.startswith("gen_ai.") and (turns := turns_of_event(name, _unpacked(body, have))):
        answer = name in ANSWERS
        yield Words(trace, span, () if answer else turns, turns if answer else (), moment(when))


def _unpacked(body: object, have: Mapping[str, Any]) -> object:
    """Return the content of an event, from the body or, in older versions, from attributes."""
    found = opened(body) or opened(have.get("gen_ai.event.content"))
    return found if isinstance(found, Mapping) and found else {name: opened(value) for name, value in have.items()}


def _score(trace: str, span: str, have: Mapping[str, Any], when: object) -> Iterator[Score]:
    """Yield an evaluation; the label counts if there is one.

    Scores have no known scale.
    """
    value = have.get("gen_ai.evaluation.score.value")
    value = have.get("gen_ai.evaluation.score.label") if value is None else value
    name = str(have.get("gen_ai.evaluation.name") or "evaluation")
    session = next((text(have[one]) for one in SESSION_NAMES if have.get(one)), None)
    person = next((text(have[one]) for one in USER_NAMES if have.get(one)), None)
    comment = have.get("gen_ai.evaluation.explanation")
    if value is None:
        return
    places: list[tuple[Target, str]] = [("span", span), ("trace", trace), ("conversation", session or "")]
    if found := [(target, id_) for target, id_ in places if id_]:
        first, *around = found
        yield Score(*(*first, value, name), comment=comment, person=person, at=moment(when), around=tuple(around))


PHOENIX_ATTRIBUTES = "attributes."


def read_phoenix_span(fields: Fields) -> Iterator[Piece]:
    """Yield a span of the API or of a data frame, with flattened names."""
    have = flat(inside(fields.get("attributes")))
    have |= {
        k.removeprefix(PHOENIX_ATTRIBUTES): v
        for k, v in fields.items()
        if k.startswith(PHOENIX_ATTRIBUTES) and v not in (None, "")
    }
    trace = hexadecimal(_phoenix_context(fields, "trace_id")) or required(fields, "context.trace_id")
    span = hexadecimal(_phoenix_context(fields, "span_id")) or required(fields, "context.span_id")
    status = inside(fields.get("status")) or {"code": fields.get("status_code")}
    failed = "ERROR" in (status.get("code"), status.get("status_code"))
    error = str(fields.get("status_message") or status.get("description") or "failed") if failed else ""
    parent, kind = hexadecimal(fields.get("parent_id")), str(fields.get("span_kind") or "")
    yield from events_in(fields, trace, span, fields.get("start_time"))
    yield call_of(Span(trace, span, parent, fields.get("start_time"), have, error, "" if kind == "UNKNOWN" else kind))
    for one in objects(fields.get("annotations")):
        yield from read_phoenix_annotation({"span_id": span, **one})


def _phoenix_context(fields: Fields, name: str) -> object:
    return fields.get(f"context.{name}") or at(fields, f"context.{name}")


def read_phoenix_annotation(fields: Fields) -> Iterator[Piece]:
    """Yield a score of a span, trace or session; the label without a number."""
    score, label = (_phoenix_result(fields, name) for name in ("score", "label"))
    value = score if score not in (None, "") and score == score else label
    targets = (("span", "span_id"), ("trace", "trace_id"), ("conversation", "session_id"))
    found = [(target, id_) for target, name in targets if (id_ := text(fields.get(name)))]
    if value in (None, "") or not found:
        return
    target, id_ = found[0]
    yield Score(
        *(target, id_, value, required(fields, "name", "annotation_name"), required(fields, "annotator_kind")),  # type: ignore[arg-type]
        comment=_phoenix_result(fields, "explanation"),
        person=text(fields.get("user_id")) or text(fields.get("identifier")),
        at=moment(fields.get("updated_at")),
        key=text(fields.get("id")),
    )


def _phoenix_result(fields: Fields, name: str) -> Any:
    dotted = fields.get(f"result.{name}")
    return dotted if dotted is not None else at({"result": opened(fields.get("result"))}, f"result.{name}")


def read_phoenix_session(fields: Fields) -> Iterator[Piece]:
    """Yield turns by session from the client's object of all sessions."""
    for session, turns in fields.items():
        for turn in objects(turns):
            root = inside(turn.get("root_span"))
            span = text(at(root, "context.span_id")) or required(turn, "trace_id")
            failed = root.get("status_code") == "ERROR"
            yield Call(
                *(required(turn, "trace_id"), span, None, session, moment(turn.get("start_time"))),
                **sides(at(turn, "input.value"), at(turn, "output.value")),
                error=str(root.get("status_message") or "failed") if failed else "",
                facts=facts(user=text(inside(root.get("attributes")).get("user.id"))),
            )


def read_phoenix_listing(fields: Fields) -> Iterator[Piece]:
    """Yield the spans of a listed trace; of a session, or without attributes, none have words."""
    spans = objects(fields.get("spans"))
    if not any("attributes" in span for span in spans):
        what = "Phoenix's lists of sessions and traces have no words"
        raise WrongFile(what, remedy="export spans: client.spans.get_spans_dataframe()")
    for span in spans:
        yield from read_phoenix_span(
            {"context": {"trace_id": fields.get("trace_id"), "span_id": span.get("span_id")}, **span}
        )


def read_phoenix_example_row(fields: Fields) -> Iterator[Piece]:
    """Yield an example of a dataset as a conversation of its own, without session."""
    before, after = asked(under(fields, "input")), answered(under(fields, "output"))
    id_ = required(fields, "id", "node_id")
    turns = (before.turns if before else ()) + (after.turns if after else ())
    yield Talk(id_, turns, facts=facts(session_lost=True, span=text(at(fields, "source.span_id"))))
    for name, listed in _phoenix_annotations(fields):
        for one in listed if isinstance(listed, list) else [listed]:
            if isinstance(one, Mapping):
                value = one.get("score") if one.get("score") is not None else one.get("label")
                kind, comment = str(one.get("annotator_kind") or ""), one.get("explanation")
                person = text(one.get("username")) or text(one.get("user_id"))
                if value is not None:
                    yield Score("conversation", id_, value, name, kind, comment=comment, person=person)


def _phoenix_annotations(fields: Fields) -> Iterator[tuple[str, Any]]:
    prefix = "metadata.annotations."
    yield from ((k.removeprefix(prefix), opened(v)) for k, v in fields.items() if k.startswith(prefix))
    inside = at({"metadata": opened(fields.get("metadata"))}, "metadata.annotations")
    yield from inside.items() if isinstance(inside, Mapping) else ()


def is_phoenix_fine_tuning(fields: Fields) -> bool:
    """Return whether the keys are only those of Phoenix's downloads, without label or id."""
    return set(fields) in ({"messages", "tools"}, {"messages", "ideal"}) and isinstance(fields["messages"], list)


MLFLOW_SESSION, MLFLOW_USER = "mlflow.trace.session", "mlflow.trace.user"


def read_mlflow_trace(fields: Fields) -> Iterator[Piece]:
    info = inside(fields.get("info"))
    trace = required(info, "trace_id", "request_id")
    metadata = inside(info.get("trace_metadata", info.get("request_metadata")))
    session, user = text(metadata.get(MLFLOW_SESSION)), text(metadata.get(MLFLOW_USER))
    spans = opened(at(fields, "data.spans"))
    if not isinstance(spans, list):
        what = "the traces have no spans"
        raise WrongFile(what, remedy="write whole traces: trace.to_json(), or `mlflow traces search --output json`")
    begun = info.get("request_time") or info.get("timestamp_ms")
    for span in spans:
        if isinstance(span, Mapping):
            yield _mlflow_span(span, trace, session, user, begun)
    yield from _mlflow_assessments(info, trace)


def _mlflow_span(span: Mapping[str, Any], trace: str, session: str | None, user: str | None, begun: object) -> Call:
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


def _mlflow_assessments(info: Fields, trace: str) -> Iterator[Score]:
    for one in objects(info.get("assessments")):
        if one.get("valid") is False:
            continue
        feedback = inside(one.get("feedback"))
        value = feedback.get("value")
        if value is None:
            continue
        source = inside(one.get("source"))
        session = text(inside(one.get("metadata")).get(MLFLOW_SESSION))
        target = ("conversation", session) if session else ("trace", trace)
        yield Score(
            *(*target, value, required(one, "assessment_name", "name")),  # type: ignore[arg-type]
            source=str(source.get("source_type") or ""),
            comment=one.get("rationale"),
            person=text(source.get("source_id")),
            at=moment(one.get("last_update_time")),
            key=text(one.get("assessment_id")),
        )


def read_mlflow_row(fields: Fields) -> Iterator[Piece]:
    """Yield the trace in a row of the data frame, whole as JSON text or column by column."""
    if isinstance(opened(fields.get("spans")), str) and not isinstance(opened(fields.get("trace")), Mapping):
        what = "the cells hold Python's writing of objects, not JSON"
        raise WrongFile(what, remedy="write each trace with trace.to_json(), one trace a line")
    trace = opened(fields.get("trace"))
    yield from read_mlflow_trace(trace if isinstance(trace, Mapping) else {"info": fields, "data": fields})
