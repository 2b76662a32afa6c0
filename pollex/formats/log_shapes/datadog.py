"""Datadog: spans of LLM Observability as its export interface gives them."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, required, text
from pollex.formats.log_shapes.payloads import sides
from pollex.formats.log_shapes.spans import silent_kind


def read_span(fields: Fields) -> Iterator[Piece]:
    have = inside(fields.get("attributes"))
    trace, kind, tags = required(have, "trace_id"), str(have.get("span_kind") or ""), _tags(have.get("tags"))
    parent = text(have.get("parent_id"))
    yield Call(
        *(trace, required(have, "span_id"), None if parent in ("undefined", "0") else parent),
        session=text(have.get("session_id")) or text(tags.get("session_id")),
        at=moment(have.get("start_ns")),
        **sides(have.get("input"), have.get("output"), silent=silent_kind(kind)),
        model=kind == "llm",
        error="failed" if have.get("status") == "error" else "",
        facts=facts(user=text(tags.get("user_id")), model=text(have.get("model_name"))),
        beside=have,
    )
    for name, found in inside(have.get("evaluation")).items():
        if (value := inside(found).get("value")) is not None:
            yield Score("span", required(have, "span_id"), value, name)


def _tags(tags: object) -> Fields:
    """Return tags as an object, also those that are a list of `name:value`."""
    listed = tags if isinstance(tags, list) else []
    return inside(tags) or {name: value for name, mark, value in (str(tag).partition(":") for tag in listed) if mark}
