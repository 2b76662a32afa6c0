"""LangGraph: threads of its server, and their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.formats.assembly.pieces import Piece, Score, Talk, moment
from pollex.formats.assembly.thumbs import NAMES, folded
from pollex.formats.log_shapes.exports import Export, Fields, at, facts, objects, required, text
from pollex.formats.log_shapes.payloads import Side, answered


def _thread(fields: Fields) -> Iterator[Piece]:
    """Yield the newest state of a thread; failed threads may have no values."""
    id_ = required(fields, "thread_id", "metadata.thread_id", "checkpoint.thread_id")
    side = answered(fields.get("values")) or Side((), True)
    metadata = fields.get("metadata") if isinstance(fields.get("metadata"), Mapping) else {}
    keys = (
        tuple(text(message.get("id")) for message in _messages(fields))
        if len(_messages(fields)) == len(side.turns)
        else ()
    )
    when = moment(fields.get("state_updated_at") or fields.get("updated_at") or fields.get("created_at"))
    errors = [str(task["error"]) for task in objects(fields.get("tasks")) if task.get("error")]
    error = str(fields.get("error") or next(iter(errors), ""))
    said = facts(metadata=metadata, status=fields.get("status"), user=text(at(fields, "metadata.user_id")))
    yield Talk(id_, side.turns, keys, when, error, said)
    yield from scores_in(metadata, id_)


def _messages(fields: Fields) -> list[Mapping[str, object]]:
    found = at(fields, "values.messages")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def scores_in(metadata: object, conversation: str) -> Iterator[Score]:
    """Yield thumbs that an application stored in metadata, by their names."""
    for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
        if folded(str(name)) in NAMES and isinstance(value, str | int | float) and value != "":
            yield Score("conversation", conversation, value, name=str(name))


EXPORTS = (
    Export(
        name="LangGraph threads",
        signs=(("thread_id", "values", "metadata"), ("values", "checkpoint", "metadata")),
        read=_thread,
        example=(
            {
                "thread_id": "a",
                "metadata": {"feedback": "up"},
                "values": {"messages": [{"type": "human", "content": "Hello"}, {"type": "ai", "content": "Good day"}]},
            },
        ),
    ),
)
