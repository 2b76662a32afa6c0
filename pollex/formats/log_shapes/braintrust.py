"""Braintrust: logs, a span a row, and comments on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.payloads import sides
from pollex.formats.log_shapes.spans import silent_kind

SESSION_NAMES = ("session_id", "sessionId", "thread_id", "conversation_id", "gen_ai.conversation.id")


def read_span(fields: Fields) -> Iterator[Piece]:
    trace, metadata = required(fields, "root_span_id"), inside(fields.get("metadata"))
    parents, kind = fields.get("span_parents"), str(inside(fields.get("span_attributes")).get("type") or "")
    silent = silent_kind(kind) or kind in ("score", "function")
    yield Call(
        *(trace, text(fields.get("span_id")) or required(fields, "id")),
        parent=text(parents[0]) if isinstance(parents, list) and parents else None,
        session=next((found for name in SESSION_NAMES if (found := text(metadata.get(name)))), None),
        at=moment(inside(fields.get("metrics")).get("start")) or moment(fields.get("created")),
        **sides(fields.get("input"), fields.get("output"), silent=silent),
        model=kind == "llm",
        error=str(fields.get("error") or "").strip().rpartition("\n")[2],
        facts=facts(user=text(metadata.get("user_id")), tags=fields.get("tags"), model=text(metadata.get("model"))),
    )
    if (row := required(fields, "id")) != text(fields.get("span_id")):
        yield Call(trace, row, text(fields.get("span_id")))  # comments name the row
    for one in objects(fields.get("comments")):
        yield Score("trace", trace, None, comment=one.get("comment") or one.get("text"))
    scores: Mapping[str, object] = inside(fields.get("scores"))
    for name, value in scores.items():
        if value is not None:
            yield Score("trace", trace, value, name=str(name))
