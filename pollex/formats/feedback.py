"""Comments and tags as logs have them, in any shape that tells words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.text import parse_json

COMMENT_NAMES = (
    *("comment", "comments", "user_comment", "feedback_comment", "comment_text", "feedback_text", "userComment"),
    *("feedbackComment", "feedback_reason"),
)
"""Fields of a row with what was written with the thumb."""
TAG_NAMES = ("feedback_tags", "feedbackTags", "reason_tags", "feedback_reasons")
WITHIN = ("comment", "text", "note", "remark", "explanation", "body", "message", "content", "value")
"""Fields of an object that stands for a comment, or holds one beside a thumb."""
TAGS_WITHIN = ("tags", "tag", "reasons", "reason", "categories")
_NAME = ("key", "label", "name", "value", "text", "id")


def comment_of(value: object) -> str | None:
    """Return the words of a comment; None where it has a shape that tells none.

    Several are joined by lines; an object counts by the field that holds the words.
    """
    if value is None or value is False or value != value:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        found = next((value[name] for name in WITHIN if value.get(name) not in (None, "")), None)
        return comment_of(found) or None if value else ""
    if isinstance(value, list):
        said = [comment_of(one) for one in value]
        return None if None in said else "\n".join(filter(None, said))
    return None


def tags_of(value: object) -> tuple[str, ...] | None:
    """Return the tags of a list, of JSON text of one, or of text with commas; None where it is none of these."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = parse_json(value)
        except ValueError:
            return None
    if isinstance(value, str):
        value = value.split(",")
    found = list(_tags(value))
    return None if None in found else tuple(dict.fromkeys(tag for tag in found if tag))


def _tags(value: object) -> Iterator[str | None]:
    if isinstance(value, list):
        for one in value:
            yield from _tags(one)
    elif isinstance(value, Mapping):
        yield next((str(value[name]).strip() for name in _NAME if isinstance(value.get(name), str)), None)
    elif isinstance(value, str):
        yield value.strip()
    elif value is not None and value is not False and value == value:
        yield str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
