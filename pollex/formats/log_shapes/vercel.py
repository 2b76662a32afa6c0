"""The AI SDK of Vercel: chats, and message and vote tables of its template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.pieces import Message, Piece, Score, Talk, moment
from pollex.formats.log_shapes.exports import Export, Fields, facts, inside, objects, required, text, truth
from pollex.formats.log_shapes.turns import turns_in


def _chat(fields: Fields) -> Iterator[Piece]:
    id_, turns, keys = required(fields, "id", "chatId"), list[Turn](), list[str | None]()
    for message in objects(fields.get("messages")):
        said = _turns(message)
        turns += said
        keys += [text(message.get("id"))] * len(said)
    person = text(fields.get("userId"))
    yield Talk(id_, tuple(turns), tuple(keys), facts=facts(user=person, title=fields.get("title")))
    for message in objects(fields.get("messages")):
        yield from _feedback(message, person)
    for vote in objects(fields.get("votes")):
        yield from _vote(vote)


def _turns(message: Mapping[str, object]) -> tuple[Turn, ...]:
    """Return a message's turns; an answer without any part is an error."""
    turns = turns_in(message)
    if message.get("role") == "assistant" and not any(turn.content.strip() for turn in turns):
        return (Turn(role="assistant", content="[error]"),)
    return turns


def _feedback(message: Mapping[str, object], person: str | None) -> Iterator[Score]:
    value, key = inside(message.get("metadata")).get("feedback"), text(message.get("id"))
    if isinstance(value, str | int | float) and key:
        yield Score("message", key, value, person=person)


def _message(fields: Fields) -> Iterator[Piece]:
    turns = _turns({**fields, "parts": list(objects(fields.get("parts")))})
    key = required(fields, "id")
    yield Message(required(fields, "chatId"), key, turns, moment(fields.get("createdAt")))
    yield from _feedback(fields, None)


def _vote(fields: Fields) -> Iterator[Piece]:
    if fields.get("isUpvoted") is not None:
        yield Score("message", required(fields, "messageId"), truth(fields["isUpvoted"]))


def _has_parts(fields: Fields) -> bool:
    messages = objects(fields.get("messages"))
    return bool(messages) and isinstance(messages[0].get("parts"), list)


_MESSAGES = [
    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]},
    {"id": "2", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "Good day"}]},
]
_VOTE = {"chatId": "a", "messageId": "2", "isUpvoted": True}
EXPORTS = (
    Export(
        name="AI SDK chats",
        signs=(("id", "messages"), ("chatId", "messages")),
        also=_has_parts,
        read=_chat,
        example=({"id": "a", "messages": _MESSAGES, "votes": [_VOTE]},),
    ),
    Export(
        name="AI SDK messages",
        signs=(("chatId", "role", "parts", "id"),),
        read=_message,
        example=(*({**message, "chatId": "a"} for message in _MESSAGES), _VOTE),
    ),
    Export(name="AI SDK votes", signs=(("chatId", "messageId", "isUpvoted"),), read=_vote),
)
