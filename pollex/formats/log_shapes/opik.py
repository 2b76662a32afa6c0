"""Opik: traces and threads with their feedback, from its interface and from its command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, Target, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text, under
from pollex.formats.log_shapes.payloads import sides

COLUMN, REASON = "feedback_scores.", "_reason"
"""How a score's columns begin in the rows of the page, and how the name of its reason ends."""


def read_trace(fields: Fields) -> Iterator[Piece]:
    trace, error = required(fields, "id"), inside(fields.get("error_info"))
    metadata = inside(fields.get("metadata"))
    said = facts(user=text(metadata.get("user") or metadata.get("user_id")), tags=fields.get("tags"))
    call = _call(fields, trace, None, str(error.get("message") or "failed") if error else "")
    yield call._replace(session=text(fields.get("thread_id")), facts=said)
    yield from _scores(fields.get("feedback_scores"), "trace", trace)
    for column, value in fields.items():
        if column.startswith(COLUMN) and not column.endswith(REASON) and value not in (None, "", "-"):
            yield Score("trace", trace, value, column.removeprefix(COLUMN), comment=fields.get(f"{column}{REASON}"))


def _call(fields: Fields, trace: str, parent: str | None, error: str = "") -> Call:
    return Call(
        *(trace, required(fields, "id"), parent, None, moment(fields.get("start_time"))),
        **sides(under(fields, "input"), under(fields, "output")),
        model=fields.get("type") == "llm",
        error=error,
    )


def _scores(listed: object, target: Target, id_: str) -> Iterator[Score]:
    """Yield scores; for categories the label counts."""
    for score in objects(listed):
        value = score.get("category_name") or score.get("value")
        if value is not None:
            yield Score(
                *(target, id_, value, str(score.get("name") or ""), str(score.get("source") or "")),
                comment=score.get("reason"),
                person=text(score.get("created_by")),
                at=moment(score.get("last_updated_at")),
            )


def read_file(fields: Fields) -> Iterator[Piece]:
    """Yield a trace with its spans, as the command line writes it."""
    trace: Mapping[str, Any] = inside(fields.get("trace"))
    yield from read_trace(trace)
    for span in objects(fields.get("spans")):
        yield from read_span({**span, "trace_id": required(trace, "id")})


def read_span(fields: Fields) -> Iterator[Piece]:
    trace, model = required(fields, "trace_id"), fields.get("type") == "llm"
    call = _call(fields, trace, text(fields.get("parent_span_id")) or trace)
    yield call if model else call._replace(before=None, after=None)
    yield from _scores(fields.get("feedback_scores"), "span", call.span)


def read_thread(fields: Fields) -> Iterator[Piece]:
    yield from _scores(fields.get("feedback_scores"), "conversation", required(fields, "id", "thread_id"))


def is_page_row(fields: Fields) -> bool:
    """Return whether a row has columns of scores, as the page shows them."""
    return any(name.startswith(COLUMN) for name in fields)
