"""Dialogflow CX: histories of conversations, the newest interaction first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, moment
from pollex.formats.log_shapes.exports import Export, Fields, at, inside, objects, required, text
from pollex.formats.log_shapes.parts import text_of


def _conversation(fields: Fields) -> Iterator[Piece]:
    name = required(fields, "name")
    id_ = name.rpartition("/")[2]
    for number, interaction in enumerate(objects(fields.get("interactions"))):
        key = text(at(interaction, "response.responseId")) or f"{name}/{number}"
        yield Message(id_, key, _turns(interaction), moment(interaction.get("createTime")))
        feedback = inside(interaction.get("answerFeedback"))
        if feedback.get("rating") not in (None, "RATING_UNSPECIFIED"):
            comment = str(at(feedback, "ratingReason.feedback") or at(feedback, "customRating") or "")
            yield Score("message", key, feedback["rating"], comment=comment)


def _turns(interaction: Mapping[str, object]) -> tuple[Turn, ...]:
    said = at(interaction, "request.queryInput.text.text") or at(interaction, "response.queryResult.transcript")
    asked = (Turn(role="user", content=text_of(str(said))),) if said else ()
    messages = objects(at(interaction, "response.queryResult.responseMessages"))
    lines = [line for message in messages for line in (at(message, "text.text") or []) if isinstance(line, str)]
    answer = "\n".join(lines) if lines else "[error]"
    return (*asked, Turn(role="assistant", content=answer))


EXPORTS = (
    Export(
        name="Dialogflow CX conversations",
        signs=(("name", "interactions"),),
        read=_conversation,
        example=(
            {
                "name": "conversations/a",
                "interactions": [
                    {
                        "request": {"queryInput": {"text": {"text": "Hello"}}},
                        "response": {"queryResult": {"responseMessages": [{"text": {"text": ["Good day"]}}]}},
                        "answerFeedback": {"rating": "THUMBS_UP"},
                    }
                ],
            },
        ),
    ),
)
