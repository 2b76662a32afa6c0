"""Inspect's logs of evaluations, and Scout's tables of transcripts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.formats.assembly.pieces import Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import Fields, WrongFile, facts, inside, objects, required, text, truth
from pollex.formats.log_shapes.payloads import opened
from pollex.formats.log_shapes.turns import turns_of

ATTACHED = "attachment://"


def read_sample(fields: Fields) -> Iterator[Piece]:
    """Yield the conversation and scores of a sample in one epoch."""
    id_ = f"{required(fields, 'id')}_epoch_{fields.get('epoch') or 1}"
    attached = inside(fields.get("attachments"))
    turns = turns_of([_with(message, attached) for message in objects(fields.get("messages"))])
    error: Any = fields.get("error")
    error = error.get("message", "failed") if isinstance(error, Mapping) else error
    said = facts(metadata=inside(fields.get("metadata")), sample=text(fields.get("id")), epoch=fields.get("epoch"))
    yield Talk(id_, turns, at=moment(fields.get("started_at")), error=str(error or ""), facts=said)
    yield from _scores(fields.get("scores"), id_)


def _with(message: Mapping[str, Any], attached: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with its long texts, which are stored separately."""
    content, calls = _found(message.get("content"), attached), message.get("tool_calls")
    if isinstance(calls, list):
        named = [call for call in calls if isinstance(call, Mapping)]
        calls = [
            {**call, "name": call["function"]} if isinstance(call.get("function"), str) else call for call in named
        ]
    return {**message, "content": content, "tool_calls": calls}


def _found(value: Any, attached: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(ATTACHED):
        return attached.get(value.removeprefix(ATTACHED), value)
    if isinstance(value, list):
        return [_found(one, attached) for one in value]
    if isinstance(value, Mapping):
        return {name: _found(one, attached) for name, one in value.items()}
    return value


def _scores(listed: object, id_: str) -> Iterator[Score]:
    """Yield scores by name; NaN and null are none."""
    for name, score in inside(listed).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from _scores({inner: {**score, "value": one} for inner, one in value.items()}, id_)
        elif value is not None and not _is_nan(value) and not isinstance(value, list):
            comment = score.get("explanation") if isinstance(score, Mapping) else None
            yield Score("conversation", id_, value, name=str(name), comment=comment)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def read_transcript(fields: Fields) -> Iterator[Piece]:
    """Yield a transcript; `success` counts only if it was scored.

    Failed transcripts have false there, too.
    """
    id_ = required(fields, "transcript_id")
    turns = turns_of([_with(message, {}) for message in objects(fields.get("messages"))])
    sample = facts(task=text(fields.get("task_id")), set=text(fields.get("task_set")), repeat=fields.get("task_repeat"))
    said = facts(
        user=text(fields.get("user")), model=text(fields.get("model")), comment=fields.get("comment"), **sample
    )
    error = str(fields.get("error") or "").strip()
    yield Talk(id_, turns, at=moment(fields.get("date")), error=error, facts=said)
    scores = opened(fields.get("score"))
    if isinstance(scores, Mapping):
        yield from _scores(scores, id_)
    elif _is_scored(scores) and fields.get("success") is not None and not error and not _named(fields):
        yield Score("conversation", id_, truth(fields["success"]), comment=fields.get("score_explanation"))
    for name, value in _named(fields).items():
        yield Score("conversation", id_, value, name=name, comment=fields.get("score_explanation"))


def _is_scored(score: object) -> bool:
    return score not in (None, "", "null") and not _is_nan(score)


def _named(fields: Fields) -> dict[str, Any]:
    """Return the score columns by name."""
    found = {
        k.removeprefix("score_"): v for k, v in fields.items() if k.startswith("score_") and k != "score_explanation"
    }
    return {name: value for name, value in found.items() if value not in (None, "") and not _is_nan(value)}


def read_log(fields: Fields) -> Iterator[Piece]:
    """Yield the samples of a whole log."""
    for sample in objects(fields.get("samples")):
        yield from read_sample(sample)
    if fields.get("samples"):
        return
    raise WrongFile("the log has no samples", remedy="convert the whole log: `inspect log convert --to json`")
