"""Helicone: requests with their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, required, text
from pollex.formats.log_shapes.payloads import sides


def read_request(fields: Fields) -> Iterator[Piece]:
    request, answer = required(fields, "request_id"), inside(fields.get("response_body"))
    properties: Mapping[str, Any] = {str(k).casefold(): v for k, v in inside(fields.get("request_properties")).items()}
    failed: Any = answer.get("error")
    failed = failed.get("message", "failed") if isinstance(failed, Mapping) else failed
    said = sides(fields.get("request_body"), None if failed else answer) | {"history": True}
    yield Call(
        *(request, request, None, text(properties.get("helicone-session-id"))),
        at=moment(fields.get("request_created_at")),
        **said,
        model=True,
        error=str(failed or ""),
        facts=facts(user=text(fields.get("request_user_id")), model=fields.get("request_model")),
    )
    person = text(fields.get("request_user_id"))
    if fields.get("feedback_rating") not in (None, ""):
        yield Score("trace", request, fields["feedback_rating"], person=person)
    scores: Mapping[str, Any] = inside(fields.get("scores"))
    for name, value in scores.items():
        yield Score("trace", request, value.get("value") if isinstance(value, Mapping) else value, name, person=person)
