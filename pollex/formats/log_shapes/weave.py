"""Weave (Weights & Biases): calls and feedback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.formats.assembly.pieces import Call, Piece, Score, moment
from pollex.formats.labels import is_usual
from pollex.formats.log_shapes.exports import Fields, at, facts, inside, objects, required, text, under
from pollex.formats.log_shapes.payloads import answered, asked

REACTION, NOTE, USER_FEEDBACK = "wandb.reaction.1", "wandb.note.1", "wandb.agent_user_feedback"
VALUES = ("value", "score", "rating", "thumbs", "thumb", "label")
"""Names of the value in a feedback's payload that the application made."""
ANNOTATION = "wandb.annotation."


def read_call(fields: Fields) -> Iterator[Piece]:
    call, trace = required(fields, "id"), required(fields, "trace_id")
    before, after = asked(under(fields, "inputs")), answered(under(fields, "output"))
    person, history = text(inside(under(fields, "attributes")).get("user")), bool(before and before.history)
    yield Call(
        *(trace, call, text(fields.get("parent_id")), text(fields.get("thread_id")), moment(fields.get("started_at"))),
        before=before.turns if before else None,
        after=after.turns if after else None,
        model=history and text(fields.get("parent_id")) is not None,
        history=history,
        error=str(fields.get("exception") or ""),
        facts=facts(user=person),
    )
    for feedback in objects(at(inside(under(fields, "summary")), "weave.feedback")):
        yield from read_feedback({**feedback, "weave_ref": f"call/{call}"})


def read_feedback(fields: Fields) -> Iterator[Piece]:
    """Yield a reaction, or the tag of an agent's user; notes are only comments."""
    call = required(fields, "weave_ref").rpartition("/")[2]
    payload: Mapping[str, object] = inside(fields.get("payload"))
    kind = str(fields.get("feedback_type"))
    if kind == NOTE and payload.get("note"):
        yield Score("span", call, None, comment=payload["note"], person=text(fields.get("creator")))
    value = payload.get("emoji") if kind == REACTION else None
    name = kind.removeprefix(ANNOTATION) if kind.startswith(ANNOTATION) else ""
    if value is not None and not is_usual(value):
        name = str(value)  # listed among the scores, and no thumb
    elif name:
        value = payload.get("value")
    elif not kind.startswith("wandb."):  # the application's own
        name = kind
        value = next((payload[one] for one in VALUES if payload.get(one) is not None), None)
    if kind == USER_FEEDBACK:
        tags = fields.get("scorer_tags") or payload.get("scorer_tags")
        value = tags[0] if isinstance(tags, list) and tags else None
    if value is not None:
        person, when = text(fields.get("creator")), moment(fields.get("created_at"))
        yield Score("span", call, value, name, person=person, at=when)
