"""Dialogflow CX: histories of conversations, the newest interaction first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Fields, at, inside, objects, required, text
from pollex.formats.log_shapes.parts import text_of
from pollex.formats.log_shapes.payloads import opened


def read_conversation(fields: Fields) -> Iterator[Piece]:
    name = required(fields, "name")
    id_ = name.rpartition("/")[2]
    for number, interaction in enumerate(objects(_camel(fields.get("interactions")))):
        key = text(at(interaction, "response.responseId")) or f"{name}/{number}"
        yield Message(id_, key, _turns(interaction), moment(interaction.get("createTime")))
        yield from _feedback(interaction.get("answerFeedback"), key)


def read_logged(fields: Fields) -> Iterator[Piece]:
    """Yield an interaction as a row of the table that Dialogflow exports to BigQuery."""
    name, number = required(fields, "conversation_name"), required(fields, "turn_position")
    interaction = {side: _camel(opened(fields.get(side))) for side in ("request", "response")}
    key = f"{name}/{number}"
    yield Message(name.rpartition("/")[2], key, _turns(interaction), moment(number))
    yield from _feedback(_camel(opened(fields.get("bot_answer_feedback"))), key)


def _feedback(given: object, key: str) -> Iterator[Score]:
    feedback = inside(given)
    if feedback.get("rating") not in (None, "", 0, "RATING_UNSPECIFIED"):
        comment = at(feedback, "ratingReason.feedback") or at(feedback, "customRating")
        value = _NUMBERED.get(str(feedback["rating"]), feedback["rating"])
        yield Score("message", key, value, comment=comment, tags=at(feedback, "ratingReason.reasonLabels"))


_NUMBERED = {"1": "THUMBS_UP", "2": "THUMBS_DOWN"}
"""Ratings as the Python client numbers them."""


def _camel(value: object) -> Any:
    """Rename the keys of nested objects to the interface's spelling: the Python client writes them with underscores."""
    if isinstance(value, list):
        return [_camel(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {re.sub("_([a-z])", lambda found: found[1].upper(), str(key)): _camel(one) for key, one in value.items()}


def _turns(interaction: Mapping[str, object]) -> tuple[Turn, ...]:
    said = at(interaction, "request.queryInput.text.text") or at(interaction, "response.queryResult.transcript")
    asked = (Turn(role="user", content=text_of(str(said))),) if said else ()
    messages = objects(at(interaction, "response.queryResult.responseMessages"))
    lines = [line for message in messages for line in (at(message, "text.text") or []) if isinstance(line, str)]
    answer = "\n".join(lines) if lines else "[error]"
    return (*asked, Turn(role="assistant", content=answer))
