"""LangGraph: threads of its server, and their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.formats.assembly.pieces import Piece, Score, Talk, moment
from pollex.formats.assembly.thumbs import NAMES, folded
from pollex.formats.log_shapes.exports import Fields, WrongFile, at, facts, inside, objects, required, text
from pollex.formats.log_shapes.payloads import Side, answered

IDS = ("thread_id", "metadata.thread_id", "checkpoint.thread_id", "config.configurable.thread_id")
WHOLE = "export the threads with their values: client.threads.search()"


def read_thread(fields: Fields) -> Iterator[Piece]:
    """Yield the newest state of a thread; failed threads may have no values."""
    id_ = required(fields, *(name for name in IDS if at(fields, name)), IDS[0])
    values = fields.get("values") or at(fields, "checkpoint.channel_values")
    if values is None and at(fields, "checkpoint.channel_versions"):
        raise WrongFile("the checkpoint has no messages: they are in another table", remedy=WHOLE)
    side = answered(values) or Side((), True)
    metadata = inside(fields.get("metadata"))
    listed = objects(inside(values).get("messages"))
    keys = tuple(text(message.get("id")) for message in listed) if len(listed) == len(side.turns) else ()
    times = ("state_updated_at", "updated_at", "created_at", "checkpoint.ts")
    when = moment(next((found for name in times if (found := at(fields, name))), None))
    errors = [str(task["error"]) for task in objects(fields.get("tasks")) if task.get("error")]
    error = str(fields.get("error") or next(iter(errors), ""))
    comment = metadata.get("comment") or metadata.get("feedback_comment")
    said = facts(metadata=metadata, status=fields.get("status"), user=text(metadata.get("user_id")))
    yield Talk(id_, side.turns, keys, when, error, said)
    if comment:
        yield Score("conversation", id_, None, comment=comment)
    yield from scores_in(metadata, id_)


def scores_in(metadata: object, conversation: str) -> Iterator[Score]:
    """Yield thumbs that an application stored in metadata, by their names."""
    for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
        if folded(str(name)) in NAMES and isinstance(value, str | int | float) and value != "":
            yield Score("conversation", conversation, value, name=str(name))
