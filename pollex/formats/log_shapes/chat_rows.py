"""Rows under usual names: chats as the AI SDK of Vercel keeps them, and thumbs in a file of their own."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.log_parts import (
    LogPart,
    Message,
    Target,
    ToolScore,
    WholeTalk,
    parse_moment,
)
from pollex.formats.feedback import COMMENT_NAMES as COMMENTS
from pollex.formats.fields import LABEL_NAMES, OWNER_NAMES, RATING_NAMES
from pollex.formats.labels import as_number, is_usual
from pollex.formats.log_shapes.exports import (
    Fields,
    id_as_text,
    is_true,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap,
)
from pollex.formats.log_shapes.payloads import parse
from pollex.formats.log_shapes.readers import NAMES, TIME_NAMES
from pollex.formats.log_shapes.turns import TEXT_NAMES, is_part, marks_of_files, turns_in

OWNERS = frozenset(OWNER_NAMES)
THUMBS = (*LABEL_NAMES, *RATING_NAMES)
LABELS = frozenset(THUMBS)


CALLS_BESIDE = ("tool_calls", "toolCalls", "tool_results", "toolResults", "tool_call_id")
"""Where a message keeps calls of tools and their answers beside its words."""


def read_chat(fields: Fields) -> Iterator[LogPart]:
    id_ = _id(fields)
    turns = list[Turn]()
    keys = list[str | None]()
    person = id_as_text(fields.get("userId"))
    name = _listed(fields)
    rest = {key: value for key, value in fields.items() if key not in ("id", name, "votes")}
    scores: list[ToolScore] = []
    for number, message in enumerate(list_objects(fields.get(name))):
        message_turns = _turns(message)
        # a message without an id is told by its place
        key = id_as_text(message.get("id")) or f"{id_}#{number}"
        turns += message_turns
        keys += [key] * len(message_turns)

        # ids may begin anew in each chat
        for score in _feedback({**message, "id": key}, person):
            scores.append(
                score._replace(
                    target="conversation",
                    id=id_,
                    message=key,
                )
            )

    yield WholeTalk(
        id_,
        tuple(turns),
        tuple(keys),
        facts=keep_filled_facts(**{**rest, "user": person or rest.get("user")}),
    )
    yield from scores
    yield from _comment_on_whole(fields, id_, scores)
    for vote in list_objects(fields.get("votes")):
        yield from read_vote(vote)


def _comment_on_whole(
    fields: Fields,
    id_: str,
    scores: list[ToolScore],
) -> Iterator[ToolScore]:
    """Yield what was written of a whole chat whose thumbs stand in its messages, without a comment there."""
    comment = _feedback_on(fields).get("comment")
    if scores and comment and not any(score.comment for score in scores):
        yield ToolScore(
            "conversation",
            id_,
            None,
            comment=comment,
            person=scores[0].person,
        )


def _turns(message: Mapping[str, object]) -> tuple[Turn, ...]:
    content = next((message[name] for name in TEXT_NAMES if name in message), None)
    if isinstance(content, Mapping):
        inner = content.get("parts")
    else:
        inner = content

    parts = _parts(message.get("parts") or inner) or []
    files = marks_of_files(
        parse(message.get("attachments") or message.get("experimental_attachments"))
    )
    calls = {}
    for name in CALLS_BESIDE:
        if message.get(name):
            calls[name] = message[name]

    turns = turns_in(
        {
            "role": message.get("role"),
            "content": [*(parts if isinstance(parts, list) else [parts]), *files],
            **calls,
        }
    )
    # an answer without words has failed
    if message.get("role") == "assistant" and not any(turn.content.strip() for turn in turns):
        return (Turn(role="assistant", content="[error]"),)
    return turns


def _parts(content: object) -> object:
    """Return parts of a message, also in JSON text; a text that holds no parts is what was said."""
    parsed = parse(content)
    parts = isinstance(parsed, list) and bool(parsed) and all(map(is_part, parsed))
    if parts or not isinstance(content, str):
        return parsed
    return content


def _feedback(message: Mapping[str, object], person: str | None) -> Iterator[ToolScore]:
    feedback = _feedback_on(message)
    value = _value(message)
    key = id_as_text(message.get("id"))
    if isinstance(value, str | int | float) and value != "" and key:
        tags = feedback.get("tags") or feedback.get("reason")
        yield ToolScore(
            "message",
            key,
            value,
            comment=feedback.get("comment"),
            tags=tags,
            person=person,
        )


ON_MESSAGES = ("submittedFeedback", "thumbup", *THUMBS)
"""Names of a thumb in a message or its metadata; the first that is there counts, and a comment may have another's."""
_NAMED = frozenset(ON_MESSAGES)
_NOTHING: Mapping[str, object] = {}
_VALUES = ("rating", "value", "type", "score", "thumbs")


def _value(message: Mapping[str, object]) -> object:
    feedback = _feedback_on(message)
    if feedback is _NOTHING:
        return None

    return next(
        (feedback[name] for name in _VALUES if feedback.get(name) is not None),
        None,
    )


def _feedback_on(message: Mapping[str, object]) -> Mapping[str, object]:
    if "metadata" not in message and _NAMED.isdisjoint(message):
        return _NOTHING  # as most messages are

    # a thumb in the message goes before one in its metadata
    places = (message, unwrap(message.get("metadata")))
    named = (
        (place, name) for place in places for name in ON_MESSAGES if place.get(name) is not None
    )
    place, name = next(named, (message, ""))
    thumb = place.get(name)
    if isinstance(thumb, Mapping):
        return thumb

    # words beside the thumb, under another name than the thumb's
    written = (
        place[other] for other in WRITTEN if other != name and isinstance(place.get(other), str)
    )
    return {"value": thumb, "comment": next(written, None)}


WRITTEN = (*COMMENTS, "feedback")
"""Names of what was written beside a thumb of another name."""


def _id(fields: Fields) -> str:
    # a chat without an id gets one made of its content
    held = json.dumps(fields, sort_keys=True, ensure_ascii=True)
    named = next(
        (id_ for name in ("id", *OWNER_NAMES, "_id") if (id_ := id_as_text(fields.get(name)))),
        None,
    )
    return named or "sha256-" + sha256(held.encode()).hexdigest()[:16]


def _listed(fields: Fields) -> str:
    return next(
        (name for name in (*NAMES, "message") if isinstance(fields.get(name), list)),
        "messages",
    )


def read_message(fields: Fields) -> Iterator[LogPart]:
    key = require_text(fields, "id")
    message = {**fields, "content": parse(fields.get("content"))}  # a table's column of JSON
    yield Message(
        require_text(fields, "chatId", *OWNER_NAMES),
        key,
        _turns(message),
        parse_moment(fields.get("createdAt")),
    )
    yield from _feedback(fields, None)


def read_vote(fields: Fields) -> Iterator[LogPart]:
    if fields.get("isUpvoted") not in (None, ""):
        key = require_text(fields, "messageId")
        yield ToolScore(
            "conversation",
            id_as_text(fields.get("chatId")) or "",
            is_true(fields["isUpvoted"]),
            message=key,
        )


def is_stored(fields: Fields) -> bool:
    """Return whether messages are of the AI SDK, in parts, or hold thumbs or ids that votes in other files may name."""
    listed = parse(fields.get(_listed(fields)))
    if isinstance(listed, list):
        first = next((message for message in listed if isinstance(message, dict)), {})
    else:
        first = {}

    if not first or (first.keys() & OWNERS and not fields.keys() & {"id", "chatId"}):
        return False
    if isinstance(first.get("parts"), list):
        return "role" in first
    if not LABELS.isdisjoint(fields) or "role" not in first or first.keys().isdisjoint(TEXT_NAMES):
        return False
    if "id" in first and "id" in fields:
        return True

    values = map(_value, list_objects(listed))
    return any(is_usual(value) or as_number(value) for value in values if value is not None)


MESSAGE_NAMES = ("message_id", "messageId", "msg_id")
VALUE_NAMES = (*LABEL_NAMES, *RATING_NAMES, "isUpvoted", "score", "value")
COMMENT_NAMES = ("comment", "reason", "comments")
PERSON_NAMES = ("user_id", "userId", "user", "annotator", "judge")
KNOWN = frozenset(
    (
        *OWNER_NAMES,
        *MESSAGE_NAMES,
        *VALUE_NAMES,
        *COMMENT_NAMES,
        *PERSON_NAMES,
        *TIME_NAMES,
        "id",
        "_id",
        "updated_at",
    )
)


def read_votes(fields: Fields) -> Iterator[LogPart]:
    owner, message, value, comment, person, when = (
        next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
        for names in (
            OWNER_NAMES,
            MESSAGE_NAMES,
            VALUE_NAMES,
            COMMENT_NAMES,
            PERSON_NAMES,
            TIME_NAMES,
        )
    )
    named = id_as_text(owner)
    key = id_as_text(message)
    if value is not None and (named or key):
        target: Target = "conversation" if named else "message"
        by = id_as_text(person)
        owned = named or key or ""
        yield ToolScore(
            target,
            owned,
            value,
            comment=comment,
            person=by,
            at=parse_moment(when),
            message=key,
        )


def is_vote(fields: Fields) -> bool:
    """Return whether a row has an id and a value, and no field that might hold words of a conversation."""
    named = any(name in fields for name in (*OWNER_NAMES, *MESSAGE_NAMES))
    return named and any(name in fields for name in VALUE_NAMES) and fields.keys() <= KNOWN
