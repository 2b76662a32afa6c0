"""Phoenix (Arize): spans, annotations, turns of sessions and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Call, Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import (
    Fields,
    WrongFile,
    at,
    facts,
    inside,
    objects,
    required,
    text,
    under,
)
from pollex.formats.log_shapes.otlp import events_in, hexadecimal
from pollex.formats.log_shapes.payloads import answered, asked, flat, opened, sides
from pollex.formats.log_shapes.spans import Span, call_of

ATTRIBUTES = "attributes."


def read_span(fields: Fields) -> Iterator[Piece]:
    """Yield a span of the API or of a data frame, with flattened names."""
    have = flat(inside(fields.get("attributes")))
    have |= {
        k.removeprefix(ATTRIBUTES): v for k, v in fields.items() if k.startswith(ATTRIBUTES) and v not in (None, "")
    }
    trace = hexadecimal(_context(fields, "trace_id")) or required(fields, "context.trace_id")
    span = hexadecimal(_context(fields, "span_id")) or required(fields, "context.span_id")
    status = inside(fields.get("status")) or {"code": fields.get("status_code")}
    failed = "ERROR" in (status.get("code"), status.get("status_code"))
    error = str(fields.get("status_message") or status.get("description") or "failed") if failed else ""
    parent, kind = hexadecimal(fields.get("parent_id")), str(fields.get("span_kind") or "")
    yield from events_in(fields, trace, span, fields.get("start_time"))
    yield call_of(Span(trace, span, parent, fields.get("start_time"), have, error, "" if kind == "UNKNOWN" else kind))
    for one in objects(fields.get("annotations")):
        yield from read_annotation({"span_id": span, **one})


def _context(fields: Fields, name: str) -> object:
    return fields.get(f"context.{name}") or at(fields, f"context.{name}")


def read_annotation(fields: Fields) -> Iterator[Piece]:
    """Yield a score of a span, trace or session; the label without a number."""
    score, label = (_result(fields, name) for name in ("score", "label"))
    value = score if score not in (None, "") and score == score else label
    targets = (("span", "span_id"), ("trace", "trace_id"), ("conversation", "session_id"))
    found = [(target, id_) for target, name in targets if (id_ := text(fields.get(name)))]
    if value in (None, "") or not found:
        return
    target, id_ = found[0]
    yield Score(
        *(target, id_, value, required(fields, "name", "annotation_name"), required(fields, "annotator_kind")),  # type: ignore[arg-type]
        comment=_result(fields, "explanation"),
        person=text(fields.get("user_id")) or text(fields.get("identifier")),
        at=moment(fields.get("updated_at")),
        key=text(fields.get("id")),
    )


def _result(fields: Fields, name: str) -> Any:
    dotted = fields.get(f"result.{name}")
    return dotted if dotted is not None else at({"result": opened(fields.get("result"))}, f"result.{name}")


def read_session(fields: Fields) -> Iterator[Piece]:
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


def read_listing(fields: Fields) -> Iterator[Piece]:
    """Yield the spans of a listed trace; of a session, or without attributes, none have words."""
    spans = objects(fields.get("spans"))
    if not any("attributes" in span for span in spans):
        what = "Phoenix's lists of sessions and traces have no words"
        raise WrongFile(what, remedy="export spans: client.spans.get_spans_dataframe()")
    for span in spans:
        yield from read_span({"context": {"trace_id": fields.get("trace_id"), "span_id": span.get("span_id")}, **span})


def read_example_row(fields: Fields) -> Iterator[Piece]:
    """Yield an example of a dataset as a conversation of its own, without session."""
    before, after = asked(under(fields, "input")), answered(under(fields, "output"))
    id_ = required(fields, "id", "node_id")
    turns = (before.turns if before else ()) + (after.turns if after else ())
    yield Talk(id_, turns, facts=facts(session_lost=True, span=text(at(fields, "source.span_id"))))
    for name, listed in _annotations(fields):
        for one in listed if isinstance(listed, list) else [listed]:
            if isinstance(one, Mapping):
                value = one.get("score") if one.get("score") is not None else one.get("label")
                kind, comment = str(one.get("annotator_kind") or ""), one.get("explanation")
                person = text(one.get("username")) or text(one.get("user_id"))
                if value is not None:
                    yield Score("conversation", id_, value, name, kind, comment=comment, person=person)


def _annotations(fields: Fields) -> Iterator[tuple[str, Any]]:
    prefix = "metadata.annotations."
    yield from ((k.removeprefix(prefix), opened(v)) for k, v in fields.items() if k.startswith(prefix))
    inside = at({"metadata": opened(fields.get("metadata"))}, "metadata.annotations")
    yield from inside.items() if isinstance(inside, Mapping) else ()


def is_fine_tuning(fields: Fields) -> bool:
    """Return whether the keys are only those of Phoenix's downloads, without label or id."""
    return set(fields) in ({"messages", "tools"}, {"messages", "ideal"}) and isinstance(fields["messages"], list)
