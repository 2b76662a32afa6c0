"""Which column has what people wrote with their thumb, where no usual name says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.columns import Column, list_columns
from pollex.formats.feedback import COMMENT_FIELD_NAMES
from pollex.formats.names import is_named_as_comment
from pollex.formats.paths import MISSING_VALUE, find_value_at_path, parse_value_if_json_text
from pollex.text import JsonObject

MAX_CONVERSATIONS_EXAMINED_FOR_COMMENTS = 1_000
"""Conversations by which the column of comments is told."""
MIN_SHARE_OF_MULTI_WORD_COMMENTS = 0.3
"""Share of the values that are several words, in a column of what people wrote."""
MIN_SHARE_OF_DISTINCT_ONE_WORD_COMMENTS = 0.5
"""Share of single words that differ, where somebody wrote them."""
MIN_SHARE_OF_COMMENTS_WITH_THUMB = 0.9
"""Share of the comments that stand beside a thumb."""


def may_hold_comments(column: Column) -> bool:
    """Return whether a column is named like comments, and its values are no few words such as a label's."""
    words = column.words
    if not words or not is_named_as_comment(column.path) or column.times > 0:
        return False

    # a note may also be a mark, and a reason one of a list
    spaced = sum(" " in word.strip() for word in words)
    if spaced >= MIN_SHARE_OF_MULTI_WORD_COMMENTS * len(words):
        return True

    from pollex.formats.label_columns import (  # few columns do
        estimate_label_likelihood,
        is_ambiguous_label_column,
    )

    lettered = any(sign.isalpha() for word in words for sign in word)
    again_and_again = len(words) < MIN_SHARE_OF_DISTINCT_ONE_WORD_COMMENTS * column.filled
    is_label = estimate_label_likelihood(column) > 0 or is_ambiguous_label_column(column)
    return lettered and not again_and_again and not is_label


def find_comment_beside(fields: JsonObject, label: str) -> object:
    """Return what was written with a thumb that has a row of its own; `MISSING_VALUE` if nothing was.

    Args:
        label: The path to the thumb; the comment stands in the same object.
    """
    outer, _, last = label.rpartition(".")
    beside: object = fields
    if label not in fields and outer:
        beside = parse_value_if_json_text(find_value_at_path(fields, outer))
    if not isinstance(beside, Mapping):
        return MISSING_VALUE

    named = []
    for name in beside:
        if is_named_as_comment(name) and name not in (label, last):
            named.append(name)

    for name in (*COMMENT_FIELD_NAMES, *named):
        value = beside.get(name)
        if isinstance(value, str) and value.strip():
            return value

    return MISSING_VALUE


def find_comment_columns(logs: Logs) -> list[str]:
    """Return the columns that may have comments: filled where there is a thumb, and hardly elsewhere."""
    conversations = list(islice(logs, MAX_CONVERSATIONS_EXAMINED_FOR_COMMENTS))
    labeled = [conversation.label is not Label.NONE for conversation in conversations]
    # nobody writes with a thumb that isn't there, and comments that are known are enough
    if not any(labeled) or any(conversation.feedback for conversation in conversations):
        return []

    paths = []
    for column in list_columns([conversation.metadata for conversation in conversations]):
        if _are_column_values_beside_labels(column, labeled) and may_hold_comments(column):
            paths.append(column.path)

    return paths


def _are_column_values_beside_labels(column: Column, labeled: Sequence[bool]) -> bool:
    """Return whether nearly all values of a column are of conversations with a thumb."""
    filled = 0
    with_label = 0
    for value, has_label in zip(column.values, labeled, strict=True):
        if _has_comment_words(value):
            filled += 1
            with_label += has_label

    return filled > 0 and with_label >= MIN_SHARE_OF_COMMENTS_WITH_THUMB * filled


def _has_comment_words(value: object) -> bool:
    """Return whether a conversation has words in a column, of any of its turns."""
    if isinstance(value, list):
        return any(map(_has_comment_words, value))
    return isinstance(value, str) and bool(value.strip())
