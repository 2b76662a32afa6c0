"""LangSmith: runs and feedback.

A row's `session_id` is the project; the conversation stands in the metadata. A trace's feedback may hang at an inner
run, and counts for the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.errors import BadInput
from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, facts, inside, objects, required, text
from pollex.formats.log_shapes.payloads import (
    ANSWER_NAMES,
    GENERATED_NAMES,
    QUESTION_NAMES,
    Side,
    answered,
    asked,
    of_sides,
    opened,
)
from pollex.formats.log_shapes.spans import silent_kind
from pollex.text import printable

THREAD_NAMES = ("thread_id", "session_id", "conversation_id")


def read_run(fields: Fields) -> Iterator[Piece]:
    run = required(fields, "id", "run_id")
    trace = text(fields.get("trace_id")) or text(fields.get("parent_run_id")) or run
    metadata = inside(inside(fields.get("extra")).get("metadata"))
    session = next(
        (found for name in THREAD_NAMES if (found := text(metadata.get(name)))), text(fields.get("thread_id"))
    )
    kind, failed = str(fields.get("run_type") or ""), fields.get("error")
    before, after = (None, None) if silent_kind(kind) else _sides(fields)
    parent = text(fields.get("parent_run_id"))
    if parent is None and not silent_kind(kind):
        _require_read(fields, before, after)
    yield Call(
        *(trace, run, parent, session, moment(fields.get("start_time"))),
        **of_sides(before, after),
        model=kind == "llm",
        error=str(failed) if failed else "",
        facts=facts(
            user=text(metadata.get("user_id")), model=text(metadata.get("ls_model_name")), tags=fields.get("tags")
        ),
    )
    yield from _stats(fields, run)
    for child in objects(fields.get("child_runs")):
        yield from read_run({"trace_id": trace, "parent_run_id": run, **child})


def read_thread(fields: Fields) -> Iterator[Piece]:
    """Yield the runs of a thread as `list_threads` gives it."""
    for run in objects(fields.get("runs")):
        yield from read_run({**run, "thread_id": fields["thread_id"]})


def _sides(fields: Fields) -> tuple[Side | None, Side | None]:
    return asked(fields.get("inputs")), answered(fields.get("outputs"))


def _require_read(fields: Fields, before: Side | None, after: Side | None) -> None:
    """Refuse a conversation with one side empty although other fields may hold its text."""
    sides = (("inputs", before, QUESTION_NAMES, "user"), ("outputs", after, ANSWER_NAMES, "assistant"))
    if any(side and {turn.role for turn in side.turns} >= {"user", "assistant"} for side in (before, after)):
        return
    for name, side, names, role in sides:
        values = opened(fields.get(name))
        if side is None and values is not None and not isinstance(values, Mapping):
            raise BadInput("inputs or outputs aren't an object", remedy="export the runs as LangSmith records them")
        known = {"messages", *names, *GENERATED_NAMES}
        if side is None and values and len(values) > 1 and any(values.values()) and not values.keys() & known:
            have = printable(", ".join(values), 100)
            raise BadInput(
                f"it is not clear which field has the {role}'s text; there are {have}", remedy=f"call it {names[0]}"
            )


def _stats(fields: Fields, run: str) -> Iterator[Score]:
    """Yield means of feedback, without its source, which single feedback has."""
    stats = opened(fields.get("feedback_stats"))
    for name, stat in stats.items() if isinstance(stats, Mapping) else ():
        if isinstance(stat, Mapping) and stat.get("avg") is not None:
            yield Score("span", run, stat["avg"], name=str(name), summary=True)


def read_feedback(fields: Fields) -> Iterator[Piece]:
    value = fields.get("score") if fields.get("score") is not None else fields.get("value")
    source = inside(fields.get("feedback_source")) or {"type": fields.get("feedback_source")}
    if value is None and not fields.get("comment"):
        return
    yield Score(
        *("span", required(fields, "run_id", "trace_id"), value, required(fields, "key")),
        source=str(source.get("type") or ""),
        comment=fields.get("comment"),
        person=text(source.get("user_id")),
        at=moment(fields.get("modified_at") or fields.get("created_at")),
        key=text(fields.get("id")),
    )
    if trace := text(fields.get("trace_id")):
        yield from _below(trace, required(fields, "run_id", "trace_id"))


def _below(trace: str, run: str) -> Iterator[Piece]:
    """Link a run to its trace, so that feedback on it finds the conversation."""
    if run != trace:
        yield Call(trace, run, trace)
