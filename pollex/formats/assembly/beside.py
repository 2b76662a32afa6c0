"""Columns and attributes of a row beside its tool's own scores, which may be the label."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pollex.formats.assembly.log_parts import (
    SCORE_SOURCE_COLUMN,
    ConversationFacts,
    LabelTargetKind,
    LogPart,
    Message,
    ModelCall,
    ToolScore,
    WholeTalk,
)
from pollex.formats.assembly.thumbs import matches_column_name, normalize_column_path
from pollex.formats.feedback import is_field_named_like_feedback
from pollex.formats.labels import is_usual_thumb
from pollex.formats.log_shapes.payloads import parse_nested_json
from pollex.text import JsonObject

_SPOKEN_COLUMN_WORDS = """
    input output inputs outputs messages request response requestbody responsebody question answer content usage error
    scores feedbackscores feedbackstats assessments data parts result payload snapshot chat history
"""
_SPOKEN_COLUMN_NAMES = frozenset(_SPOKEN_COLUMN_WORDS.split())
"""Columns with what was said, and with scores that the readers know."""
_NAMES_OF_OBJECTS_SEARCHED_FOR_LABELS = re.compile(
    r"(metadata|attributes|properties|extra|tags|custom|labels)$"
)
MAX_NESTING_DEPTH = 5
MAX_LABEL_CHARS = 40
"""Characters of the longest value that may be a label."""


def iterate_label_columns_as_scores(
    fields: JsonObject,
    parts: Sequence[LogPart],
    unnamed: str,
    label_field: str | None,
) -> Iterator[ToolScore]:
    """Yield the columns of a row that may be the label, as scores with the source `SCORE_SOURCE_COLUMN`.

    Args:
        unnamed: The id that a conversation without one gets.
        label_field: The label's name as the user gave it, which need not look like feedback.
    """
    calls = []
    for part in parts:
        if isinstance(part, ModelCall):
            calls.append(part)

    tool_scores = []
    for part in parts:
        if isinstance(part, ToolScore):
            tool_scores.append(part)

    for call in calls:
        yield from _iterate_matching_columns(
            call.beside, ("trace", call.trace), tool_scores, label_field
        )

    if (owner := find_rated_target(parts, unnamed)) is not None:
        # attributes that a call offered above aren't offered again
        rest = {}
        for name, value in fields.items():
            if not calls or not name.startswith("attributes"):
                rest[name] = value

        spread = any(call.beside for call in calls)
        yield from _iterate_matching_columns(
            rest if spread else fields, owner, tool_scores, label_field
        )


def find_rated_target(parts: Sequence[LogPart], unnamed: str) -> tuple[LabelTargetKind, str] | None:
    """Return the one trace, message or conversation that a row is about; None if there are several."""
    traces = set()
    for part in parts:
        if isinstance(part, ModelCall):
            traces.add(part.trace)

    talks = set()
    for part in parts:
        if isinstance(part, WholeTalk):
            talks.add(part.id or unnamed)

    messages = []
    for part in parts:
        if isinstance(part, Message):
            messages.append(part)

    chats = {message.conversation for message in messages} | {
        p.conversation for p in parts if isinstance(p, ConversationFacts)
    }
    # a single trace goes first, then a single conversation in one row, then a single message
    for target, ids in (
        ("trace", traces),
        ("conversation", talks),
        ("message", {message.key for message in messages}),
    ):
        if len(ids) == 1 and (only := ids.pop()):
            return target, only  # type: ignore[return-value]

    if len(chats) == 1 and not traces and not talks:
        return ("conversation", chats.pop())
    return None


def _iterate_matching_columns(
    fields: JsonObject,
    owner: tuple[LabelTargetKind, str],
    tool_scores: Sequence[ToolScore],
    label_field: str | None,
) -> Iterator[ToolScore]:
    for path, value in _iterate_short_values(fields):
        is_label_field = label_field is not None and matches_column_name(path, label_field)
        # a column may say again what a score of the tool says
        repeats = (
            not score.name or matches_column_name(path, score.name) or score.value == value
            for score in tool_scores
        )
        if is_label_field or (is_field_named_like_feedback(path) and not any(repeats)):
            yield ToolScore(*owner, value, path, SCORE_SOURCE_COLUMN)


def iterate_feedback_paths(fields: JsonObject) -> Iterator[str]:
    """Yield the paths of a row's short values that are named like feedback."""
    return (
        path
        for path, value in _iterate_short_values(fields)
        if is_field_named_like_feedback(path) or _is_thumb_in_feedback(path, value)
    )


def _is_thumb_in_feedback(path: str, value: object) -> bool:
    """Return whether a value is a thumb in words inside an object that is named like feedback."""
    outer, dot, _ = path.rpartition(".")
    return (
        bool(dot)
        and isinstance(value, str)
        and is_field_named_like_feedback(outer)
        and is_usual_thumb(value)
    )


def _iterate_short_values(
    fields: JsonObject,
    before: str = "",
    depth: int = 0,
) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        folded = normalize_column_path(str(name))
        if folded in _SPOKEN_COLUMN_NAMES or depth > MAX_NESTING_DEPTH:
            continue
        path = f"{before}{name}"
        # JSON text is opened only under names that hold further fields
        if isinstance(value, str) and _NAMES_OF_OBJECTS_SEARCHED_FOR_LABELS.search(folded):
            inner = parse_nested_json(value)
        else:
            inner = value

        if isinstance(inner, Mapping):
            yield from _iterate_short_values(inner, f"{path}.", depth + 1)
        elif folded.endswith("tags") and isinstance(inner, list):
            yield from _iterate_thumb_tags(path, inner)
        elif _is_short_value(inner):
            yield path, inner


def _is_short_value(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip(" -")) and len(value) <= MAX_LABEL_CHARS
    return isinstance(value, bool | int | float) and value == value


def _iterate_thumb_tags(path: str, tags: Sequence[object]) -> Iterator[tuple[str, object]]:
    """Yield tags such as `user_feedback:down`, and those that are a thumb themselves."""
    for tag in tags:
        name, mark, value = (
            re.split(r"([:=])", str(tag), maxsplit=1)
            if re.search("[:=]", str(tag))
            else (tag, "", "")
        )
        if mark and value:
            yield f"{path}.{name}", value.strip()
        elif isinstance(tag, str) and is_field_named_like_feedback(tag) and is_usual_thumb(tag):
            yield path, tag
