"""Thumbs in a file of their own: a row names a conversation or a message of it, and what somebody thought of it."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.formats.assembly.pieces import Piece, Score, Target, moment
from pollex.formats.fields import LABEL_NAMES, OWNER_NAMES, RATING_NAMES
from pollex.formats.log_shapes.exports import Fields, text
from pollex.formats.log_shapes.readers import TIME_NAMES

MESSAGE_NAMES = ("message_id", "messageId", "msg_id")
VALUE_NAMES = (*LABEL_NAMES, *RATING_NAMES, "isUpvoted", "score", "value")
COMMENT_NAMES = ("comment", "reason", "comments")
PERSON_NAMES = ("user_id", "userId", "user", "annotator", "judge")
KNOWN = frozenset(
    (*OWNER_NAMES, *MESSAGE_NAMES, *VALUE_NAMES, *COMMENT_NAMES, *PERSON_NAMES, *TIME_NAMES, "id", "_id", "updated_at")
)


def read_votes(fields: Fields) -> Iterator[Piece]:
    owner, message, value, comment, person, when = (
        next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
        for names in (OWNER_NAMES, MESSAGE_NAMES, VALUE_NAMES, COMMENT_NAMES, PERSON_NAMES, TIME_NAMES)
    )
    named, key = text(owner), text(message)
    if value is not None and (named or key):
        target: Target = "conversation" if named else "message"
        by, owned = text(person), named or key or ""
        yield Score(target, owned, value, comment=comment, person=by, at=moment(when), message=key)


def is_vote(fields: Fields) -> bool:
    """Return whether a row has an id and a value, and no field that might hold words of a conversation."""
    named = any(name in fields for name in (*OWNER_NAMES, *MESSAGE_NAMES))
    return named and any(name in fields for name in VALUE_NAMES) and fields.keys() <= KNOWN
