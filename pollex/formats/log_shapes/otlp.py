"""OpenTelemetry's spans and logs as JSON, from a collector's file exporter or from Phoenix."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Piece, Score, Target, Words, moment
from pollex.formats.log_shapes.exports import Fields, WrongFile, objects, text
from pollex.formats.log_shapes.payloads import opened
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
        yield from read_span(span)
    for record in _inside(fields, "resourceLogs", "scopeLogs", "logRecords"):
        yield from _record(record)


def read_span(fields: Mapping[str, Any]) -> Iterator[Piece]:
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
