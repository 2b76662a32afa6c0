"""Portkey: exported logs, a request a row; requests with one trace id are a conversation."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, required, text
from pollex.formats.log_shapes.payloads import sides


def read_log(fields: Fields) -> Iterator[Piece]:
    request, metadata = required(fields, "id"), inside(fields.get("metadata"))
    sent, came = inside(fields.get("request")), inside(fields.get("response"))
    said = sides(sent.get("body", sent), came.get("body", came)) | {"history": True}
    session = text(fields.get("trace_id"))
    yield Call(
        *(request, request, None, session, moment(fields.get("created_at"))),
        **said,
        model=True,
        error="" if "after" in said else str(fields.get("response_status_code") or "failed"),
        facts=facts(user=text(metadata.get("_user")), model=text(fields.get("ai_model"))),
    )
    feedback = inside(fields.get("feedback"))
    if feedback.get("value") is not None:
        yield Score("trace", request, feedback["value"])
