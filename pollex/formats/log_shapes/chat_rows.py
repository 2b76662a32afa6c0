"""Rows under usual names: chats as the AI SDK of Vercel keeps them, and thumbs in a file of their own."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256

from pollex.conversations.conversation import Turn
from pollex.conversations.logs import TIME_FIELD_NAMES
from pollex.formats.assembly.log_parts import (
    LabelTargetKind,
    LogPart,
    Message,
    ToolScore,
    WholeTalk,
    parse_timestamp,
)
from pollex.formats.feedback import COMMENT_FIELD_NAMES as COMMENTS
from pollex.formats.fields import CONVERSATION_ID_NAMES, LABEL_FIELD_NAMES, RATING_FIELD_NAMES
from pollex.formats.labels import is_usual_thumb, normalize_number
from pollex.formats.log_shapes.exports import (
    Fields,
    format_id,
    keep_filled_facts,
    list_objects,
    parse_flag,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import parse_nested_json
from pollex.formats.log_shapes.readers import TURN_LIST_NAMES
from pollex.formats.log_shapes.turns import (
    TEXT_FIELD_NAMES,
    is_content_part,
    list_file_marks,
    read_message_turns,
)

CONVERSATION_ID_NAME_SET = frozenset(CONVERSATION_ID_NAMES)
THUMB_FIELD_NAMES = (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES)
THUMB_FIELD_NAME_SET = frozenset(THUMB_FIELD_NAMES)


CALL_FIELD_NAMES = ("tool_calls", "toolCalls", "tool_results", "toolResults", "tool_call_id")
"""Where a message keeps calls of tools and their answers beside its words."""


def read_chat_row(fields: Fields) -> Iterator[LogPart]:
    id_ = _get_chat_id(fields)
    turns = list[Turn]()
    keys = list[str | None]()
    person = format_id(fields.get("userId"))
    name = _find_message_list_name(fields)
    rest = {key: value for key, value in fields.items() if key not in ("id", name, "votes")}
    scores: list[ToolScore] = []
    for number, message in enumerate(list_objects(fields.get(name))):
        message_turns = _make_message_turns(message)
        # a message without an id is told by its place
        key = format_id(message.get("id")) or f"{id_}#{number}"
        turns += message_turns
        keys += [key] * len(message_turns)

        # ids may begin anew in each chat
        for score in _read_message_feedback({**message, "id": key}, person):
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
    yield from _read_chat_comment(fields, id_, scores)
    for vote in list_objects(fields.get("votes")):
        yield from read_upvote_row(vote)


def _read_chat_comment(
    fields: Fields,
    id_: str,
    scores: list[ToolScore],
) -> Iterator[ToolScore]:
    """Yield what was written of a whole chat whose thumbs stand in its messages, without a comment there."""
    comment = _find_message_feedback(fields).get("comment")
    if scores and comment and not any(score.comment for score in scores):
        yield ToolScore(
            "conversation",
            id_,
            None,
            comment=comment,
            person=scores[0].person,
        )


def _make_message_turns(message: Mapping[str, object]) -> tuple[Turn, ...]:
    content = next((message[name] for name in TEXT_FIELD_NAMES if name in message), None)
    if isinstance(content, Mapping):
        inner = content.get("parts")
    else:
        inner = content

    parts = _parse_message_parts(message.get("parts") or inner) or []
    files = list_file_marks(
        parse_nested_json(message.get("attachments") or message.get("experimental_attachments"))
    )
    calls = {}
    for name in CALL_FIELD_NAMES:
        if message.get(name):
            calls[name] = message[name]

    turns = read_message_turns(
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


def _parse_message_parts(content: object) -> object:
    """Return parts of a message, also in JSON text; a text that holds no parts is what was said."""
    parsed = parse_nested_json(content)
    parts = isinstance(parsed, list) and bool(parsed) and all(map(is_content_part, parsed))
    if parts or not isinstance(content, str):
        return parsed
    return content


def _read_message_feedback(
    message: Mapping[str, object], person: str | None
) -> Iterator[ToolScore]:
    feedback = _find_message_feedback(message)
    value = _get_feedback_value(message)
    key = format_id(message.get("id"))
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


MESSAGE_THUMB_NAMES = ("submittedFeedback", "thumbup", *THUMB_FIELD_NAMES)
"""Names of a thumb in a message or its metadata; the first that is there counts, and a comment may have another's."""
_MESSAGE_THUMB_NAME_SET = frozenset(MESSAGE_THUMB_NAMES)
_NO_FEEDBACK: Mapping[str, object] = {}
_FEEDBACK_VALUE_NAMES = ("rating", "value", "type", "score", "thumbs")


def _get_feedback_value(message: Mapping[str, object]) -> object:
    feedback = _find_message_feedback(message)
    if feedback is _NO_FEEDBACK:
        return None

    return next(
        (feedback[name] for name in _FEEDBACK_VALUE_NAMES if feedback.get(name) is not None),
        None,
    )


def _find_message_feedback(message: Mapping[str, object]) -> Mapping[str, object]:
    if "metadata" not in message and _MESSAGE_THUMB_NAME_SET.isdisjoint(message):
        return _NO_FEEDBACK  # as most messages are

    # a thumb in the message goes before one in its metadata
    places = (message, unwrap_object(message.get("metadata")))
    named = (
        (place, name)
        for place in places
        for name in MESSAGE_THUMB_NAMES
        if place.get(name) is not None
    )
    place, name = next(named, (message, ""))
    thumb = place.get(name)
    if isinstance(thumb, Mapping):
        return thumb

    # words beside the thumb, under another name than the thumb's
    written = (
        place[other]
        for other in WRITTEN_COMMENT_NAMES
        if other != name and isinstance(place.get(other), str)
    )
    return {"value": thumb, "comment": next(written, None)}


WRITTEN_COMMENT_NAMES = (*COMMENTS, "feedback")
"""Names of what was written beside a thumb of another name."""


def _get_chat_id(fields: Fields) -> str:
    # a chat without an id gets one made of its content
    held = json.dumps(fields, sort_keys=True, ensure_ascii=True)
    named = next(
        (
            id_
            for name in ("id", *CONVERSATION_ID_NAMES, "_id")
            if (id_ := format_id(fields.get(name)))
        ),
        None,
    )
    return named or "sha256-" + sha256(held.encode()).hexdigest()[:16]


def _find_message_list_name(fields: Fields) -> str:
    return next(
        (name for name in (*TURN_LIST_NAMES, "message") if isinstance(fields.get(name), list)),
        "messages",
    )


def read_message_row(fields: Fields) -> Iterator[LogPart]:
    key = require_text(fields, "id")
    message = {
        **fields,
        "content": parse_nested_json(fields.get("content")),
    }  # a table's column of JSON
    yield Message(
        require_text(fields, "chatId", *CONVERSATION_ID_NAMES),
        key,
        _make_message_turns(message),
        parse_timestamp(fields.get("createdAt")),
    )
    yield from _read_message_feedback(fields, None)


def read_upvote_row(fields: Fields) -> Iterator[LogPart]:
    if fields.get("isUpvoted") not in (None, ""):
        key = require_text(fields, "messageId")
        yield ToolScore(
            "conversation",
            format_id(fields.get("chatId")) or "",
            parse_flag(fields["isUpvoted"]),
            message=key,
        )


def is_stored_chat(fields: Fields) -> bool:
    """Return whether messages are of the AI SDK, in parts, or hold thumbs or ids that votes in other files may name."""
    listed = parse_nested_json(fields.get(_find_message_list_name(fields)))
    if isinstance(listed, list):
        first = next((message for message in listed if isinstance(message, dict)), {})
    else:
        first = {}

    if not first or (
        first.keys() & CONVERSATION_ID_NAME_SET and not fields.keys() & {"id", "chatId"}
    ):
        return False
    if isinstance(first.get("parts"), list):
        return "role" in first
    if (
        not THUMB_FIELD_NAME_SET.isdisjoint(fields)
        or "role" not in first
        or first.keys().isdisjoint(TEXT_FIELD_NAMES)
    ):
        return False
    if "id" in first and "id" in fields:
        return True

    values = map(_get_feedback_value, list_objects(listed))
    return any(
        is_usual_thumb(value) or normalize_number(value) for value in values if value is not None
    )


MESSAGE_ID_NAMES = ("message_id", "messageId", "msg_id")
VOTE_VALUE_NAMES = (*LABEL_FIELD_NAMES, *RATING_FIELD_NAMES, "isUpvoted", "score", "value")
VOTE_COMMENT_NAMES = ("comment", "reason", "comments")
VOTER_NAMES = ("user_id", "userId", "user", "annotator", "judge")
VOTE_FIELD_NAMES = frozenset(
    (
        *CONVERSATION_ID_NAMES,
        *MESSAGE_ID_NAMES,
        *VOTE_VALUE_NAMES,
        *VOTE_COMMENT_NAMES,
        *VOTER_NAMES,
        *TIME_FIELD_NAMES,
        "id",
        "_id",
        "updated_at",
    )
)


def read_vote_row(fields: Fields) -> Iterator[LogPart]:
    owner, message, value, comment, person, when = (
        next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
        for names in (
            CONVERSATION_ID_NAMES,
            MESSAGE_ID_NAMES,
            VOTE_VALUE_NAMES,
            VOTE_COMMENT_NAMES,
            VOTER_NAMES,
            TIME_FIELD_NAMES,
        )
    )
    named = format_id(owner)
    key = format_id(message)
    if value is not None and (named or key):
        target: LabelTargetKind = "conversation" if named else "message"
        by = format_id(person)
        owned = named or key or ""
        yield ToolScore(
            target,
            owned,
            value,
            comment=comment,
            person=by,
            at=parse_timestamp(when),
            message=key,
        )


def is_vote_row(fields: Fields) -> bool:
    """Return whether a row has an id and a value, and no field that might hold words of a conversation."""
    named = any(name in fields for name in (*CONVERSATION_ID_NAMES, *MESSAGE_ID_NAMES))
    return (
        named
        and any(name in fields for name in VOTE_VALUE_NAMES)
        and fields.keys() <= VOTE_FIELD_NAMES
    )
