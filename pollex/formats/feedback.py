"""Comments, tags and further signals as logs have them beside the label."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Label
from pollex.errors import BadInput
from pollex.formats.labels import LabelRules, normalize_number
from pollex.text import JsonObject, parse_json

COMMENT_FIELD_NAMES = (
    *(
        "comment",
        "comments",
        "user_comment",
        "feedback_comment",
        "comment_text",
        "feedback_text",
        "userComment",
    ),
    *("feedbackComment", "feedback_reason"),
)
"""Fields of a row with what was written with the thumb."""
TAG_FIELD_NAMES = ("feedback_tags", "feedbackTags", "reason_tags", "feedback_reasons")
COMMENT_NAMES_INSIDE_FEEDBACK_OBJECT = (
    "comment",
    "text",
    "note",
    "remark",
    "explanation",
    "body",
    "message",
    "content",
    "value",
)
"""Fields of an object that stands for a comment, or holds one beside a thumb."""
_FEEDBACK_NAME_PATTERN = re.compile(
    r"feedback|thumb|csat|satisf|sentiment|(up|down)vote|resolved|solved|smiley"
    r"|(?<![a-z])(user|human|customer)?_?(rat(ing|ed)|scores?|votes?|(dis)?liked?s?|reactions?|helpful|nps|ok|success|verdict|grade)(?![a-z])"
)
_NON_THUMB_ENDING_PATTERN = re.compile(
    r"(?<![a-z])(ids?|at|key|comments?|reasons?|text|notes?|time(stamp)?|source|stats?|counts?|n|avg|name|type|model|enabled)$"
)
"""Ends of names of what stands beside a thumb."""
_MACHINE_JUDGED_PATTERN = re.compile(
    r"(^|[._])(analys[ei]s|evals?|judged?|graders?)([._]|$)|evaluat(ion|or)|call_success"
)
"""Paths to what a model or a rule judged, which is nobody's thumb."""
TAG_NAMES_INSIDE_FEEDBACK_OBJECT = ("tags", "tag", "reasons", "reason", "categories")
MIN_WORDS_OF_WRITTEN_REASON = 3
"""Words of a reason that somebody wrote, and chose from no list."""
_TAG_TEXT_NAMES = ("key", "label", "name", "value", "text", "id")


@lru_cache(maxsize=4096)
def is_field_named_like_feedback(path: str) -> bool:
    """Return whether a field is named like feedback that somebody gave."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path).casefold()
    apart = _NON_THUMB_ENDING_PATTERN.search(spaced) or _MACHINE_JUDGED_PATTERN.search(spaced)
    return bool(_FEEDBACK_NAME_PATTERN.search(spaced)) and not apart


def is_judged_by_machine(path: str) -> bool:
    """Return whether a field has what a model or a rule judged."""
    return bool(_MACHINE_JUDGED_PATTERN.search(path.casefold()))


def parse_feedback_comment(value: object) -> str | None:
    """Return the words of a comment; None where it has a shape that tells none.

    Several are joined by lines; an object counts by the field that holds the words.
    """
    # nothing, a no, or NaN
    if value is None or value is False or value != value:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        words = next(
            (
                value[name]
                for name in COMMENT_NAMES_INSIDE_FEEDBACK_OBJECT
                if value.get(name) not in (None, "")
            ),
            None,
        )
        if value:
            return parse_feedback_comment(words) or None
        return ""

    if isinstance(value, list):
        comments = [parse_feedback_comment(comment) for comment in value]
        if None in comments:
            return None
        return "\n".join(filter(None, comments))

    return None


def is_written_reason(reason: object) -> bool:
    """Return whether a reason is a sentence that somebody wrote, and neither a tag nor a list of them."""
    if not isinstance(reason, str) or reason.lstrip()[:1] == "[":
        return False
    return len(reason.split(",")[0].split()) >= MIN_WORDS_OF_WRITTEN_REASON


def parse_feedback_tags(value: object) -> tuple[str, ...] | None:
    """Return the tags of a list, of JSON text of one, or of text with commas; None where it is none of these."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = parse_json(value)
        except ValueError:
            return None

    if isinstance(value, str):
        value = value.split(",")

    tags = list(_iterate_tags(value))
    if None in tags:
        return None
    filled_tags = []
    for tag in tags:
        if tag:
            filled_tags.append(tag)
    return tuple(dict.fromkeys(filled_tags))


def _iterate_tags(value: object) -> Iterator[str | None]:
    if isinstance(value, list):
        for entry in value:
            yield from _iterate_tags(entry)
    elif isinstance(value, Mapping):
        yield next(
            (
                str(value[name]).strip()
                for name in _TAG_TEXT_NAMES
                if isinstance(value.get(name), str)
            ),
            None,
        )
    elif isinstance(value, str):
        yield value.strip()
    elif value is not None and value is not False and value == value:
        yield str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


THUMB_SIDES_OF_YES_SIGNAL = ("up", "down")


def split_signal_option_into_field_and_side(signal: str) -> tuple[str, str]:
    """Split `retried:down` into the field and the side that a yes speaks for; without one the field holds ratings."""
    name, colon, side = signal.rpartition(":")
    if colon and side in THUMB_SIDES_OF_YES_SIGNAL:
        return (name, side)
    return (signal, "")


def iterate_behavior_signals_of_row(
    values: JsonObject, signals: Iterable[str]
) -> Iterator[tuple[str, bool | None]]:
    """Yield each signal that has a value, and whether it happened; None where the value tells nothing.

    Args:
        values: By the name of the field.
    """
    for signal in signals:
        name, side = split_signal_option_into_field_and_side(signal)
        if values.get(name) is not None:
            try:
                label = _get_thumb_label_of_signal_value(values[name], says_yes_or_no=bool(side))
            except BadInput:
                yield signal, None
                continue

            if label is not Label.NONE:
                yield signal, label is (Label.POSITIVE if side else Label.NEGATIVE)


def _get_thumb_label_of_signal_value(value: object, *, says_yes_or_no: bool) -> Label:
    """Return what a value is: yes or no, else a thumb, or stars where it is a number above 1."""
    number = normalize_number(value)
    if says_yes_or_no and number:
        return Label.POSITIVE if float(number) > 0 else Label.NEGATIVE

    # a number above 1 is a rating, by the usual bounds
    stars = not says_yes_or_no and number and float(number) > 1
    return LabelRules.of(
        **(DEFAULT_RATING_BOUNDS if stars else {"positive": None, "negative": None})
    ).label(value)
