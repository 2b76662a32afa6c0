"""Langfuse: exports of traces, observations and scores from pages, API and blob storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.payloads import opened, sides
from pollex.formats.log_shapes.spans import silent_kind

_OWN = frozenset(
    [
        "id",
        "timestamp",
        "name",
        "userid",
        "sessionid",
        "release",
        "version",
        "environment",
        "tags",
        "bookmarked",
        "public",
        "input",
        "output",
        "metadata",
        "comments",
        "traceid",
        "tracename",
        "type",
        "starttime",
        "endtime",
        "completionstarttime",
        "level",
        "statusmessage",
        "parentobservationid",
        "latency",
        "latencyms",
        "observationcount",
        "totalcost",
        "usage",
        "usagedetails",
        "costdetails",
        "toolcalls",
        "tooldefinitions",
        "toolcallnames",
        "htmlpath",
        "projectid",
        "createdat",
        "updatedat",
        "scores",
        "observations",
        "model",
        "modelid",
        "providedmodelname",
    ]
)


def _name(fields: Fields, camel: str) -> Any:
    """Return the value under a name in the spelling of pages or of blob storage."""
    if camel in fields:
        return fields[camel]
    return fields.get("".join(f"_{c.lower()}" if c.isupper() else c for c in camel))


def read_trace(fields: Fields) -> Iterator[Piece]:
    """Yield a trace with its input and output, nested observations, and scores."""
    trace = required(fields, "id")
    session = text(_name(fields, "sessionId"))
    yield _call(fields, trace, f"{trace}/trace", None, session, _name(fields, "timestamp"))
    for observation in objects(fields.get("observations")):
        yield from read_observation({"traceId": trace, **observation})
    yield from _inside(fields, trace)


def read_download(fields: Fields) -> Iterator[Piece]:
    """Yield one trace as its page downloads it."""
    for observation in objects(fields.get("observations")):
        yield from read_observation(observation)
    yield from _inside(fields, None)


def _inside(fields: Fields, trace: str | None) -> Iterator[Score]:
    """Yield scores in rows, or in columns of values, which have no sources."""
    for score in objects(fields.get("scores")):
        if "name" in score:
            yield from read_score({"traceId": trace, **score})
    for name, value in {**fields, **inside(fields.get("scores"))}.items():
        listed = opened(value)
        if isinstance(listed, list) and listed and name.replace("_", "").lower() not in _OWN and trace:
            values = [one for one in listed if isinstance(one, str | int | float)]
            yield from (Score("trace", trace, one, name=name, summary=True) for one in values)


def read_observation(fields: Fields) -> Iterator[Piece]:
    trace = required(fields, "traceId", "trace_id")
    parent = text(_name(fields, "parentObservationId"))
    session, begun = text(_name(fields, "sessionId")), _name(fields, "startTime")
    yield _call(fields, trace, required(fields, "id"), parent, session, begun)
    if not parent:
        yield from _inside({k: v for k, v in fields.items() if k != "scores"}, trace)


def _call(fields: Fields, trace: str, span: str, parent: str | None, session: str | None, begun: object) -> Call:
    kind = str(fields.get("type") or "")
    failed = str(_name(fields, "statusMessage") or "failed") if fields.get("level") == "ERROR" else ""
    said = facts(user=text(_name(fields, "userId")), model=_name(fields, "providedModelName") or fields.get("model"))
    return Call(
        *(trace, span, parent, session, moment(begun)),
        **sides(fields.get("input"), fields.get("output"), silent=silent_kind(kind)),
        model=kind == "GENERATION",
        error=failed,
        facts=said,
    )


def read_score(fields: Fields) -> Iterator[Score]:
    """Yield a score; for categories the label counts, not the number."""
    subject = fields.get("subject")
    kind, value = str(_name(fields, "dataType") or ""), fields.get("value")
    if kind == "CATEGORICAL":
        value = _name(fields, "stringValue") or (value if isinstance(value, str) else None)
    subject = subject if isinstance(subject, Mapping) else {}
    targets = {
        "span": text(_name(fields, "observationId")) or _of(subject, "observation"),
        "trace": text(_name(fields, "traceId")) or _of(subject, "trace"),
        "conversation": text(_name(fields, "sessionId")) or _of(subject, "session"),
    }
    found = [(target, id_) for target, id_ in targets.items() if id_]
    if value in (None, "") or not found:
        return
    target, id_ = found[0]
    yield Score(
        *(target, id_, value, str(fields.get("name") or ""), str(fields.get("source") or "")),  # type: ignore[arg-type]
        comment=fields.get("comment"),
        person=text(_name(fields, "authorUserId")) or text(_name(fields, "authorUserName")),
        at=moment(fields.get("timestamp")),
        key=text(fields.get("id")),
        around=tuple(found[1:]),  # type: ignore[arg-type]
    )


def _of(subject: Mapping[str, Any], kind: str) -> str | None:
    return text(subject.get("id")) if subject.get("kind") == kind else None


def read_sent(fields: Fields) -> Iterator[Piece]:
    """Yield scores that a program sent to the API; uploads of media are skipped."""
    if str(fields.get("path")).endswith("/scores"):
        body = fields.get("body")
        for one in body if isinstance(body, list) else [body]:
            if isinstance(one, Mapping):
                yield from read_score({"source": "API", **one})
