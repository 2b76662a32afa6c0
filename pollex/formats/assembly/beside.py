"""Columns and attributes of a row beside its tool's own scores, which may be the label."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pollex.formats.assembly.log_parts import (
    COLUMN,
    Facts,
    LogPart,
    Message,
    ModelCall,
    Target,
    ToolScore,
    WholeTalk,
)
from pollex.formats.assembly.thumbs import is_named, letters
from pollex.formats.labels import is_usual
from pollex.formats.log_shapes.payloads import parse

_LIKELY = re.compile(
    r"feedback|thumb|csat|satisf|sentiment|(up|down)vote|resolved|solved|smiley"
    r"|(?<![a-z])(user|human|customer)?_?(rat(ing|ed)|scores?|votes?|(dis)?liked?s?|reactions?|helpful|nps|ok|success|verdict|grade)(?![a-z])"
)
_APART = re.compile(
    r"(?<![a-z])(ids?|at|key|comments?|reasons?|text|notes?|time(stamp)?|source|stats?|counts?|n|avg|name|type|model|enabled)$"
)
"""Ends of names of what stands beside a thumb."""
_JUDGED = re.compile(
    r"(^|[._])(analys[ei]s|evals?|judged?|graders?)([._]|$)|evaluat(ion|or)|call_success"
)
"""Paths to what a model or a rule judged, which is nobody's thumb."""
_SAID = """
    input output inputs outputs messages request response requestbody responsebody question answer content usage error
    scores feedbackscores feedbackstats assessments data parts result payload snapshot chat history
"""
_WORDS = frozenset(_SAID.split())
"""Columns with what was said, and with scores that the readers know."""
_OPENED = re.compile(r"(metadata|attributes|properties|extra|tags|custom|labels)$")
DEEPEST = 5
LONGEST = 40
"""Characters of the longest value that may be a label."""


def columns_offered(
    fields: Mapping[str, Any],
    parts: Sequence[LogPart],
    unnamed: str,
    label_field: str | None,
) -> Iterator[ToolScore]:
    """Yield the columns of a row that may be the label, as scores with the source `COLUMN`.

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
        yield from _of(call.beside, ("trace", call.trace), tool_scores, label_field)

    if (owner := owner_of(parts, unnamed)) is not None:
        # attributes that a call offered above aren't offered again
        rest = {}
        for name, value in fields.items():
            if not calls or not name.startswith("attributes"):
                rest[name] = value

        spread = any(call.beside for call in calls)
        yield from _of(rest if spread else fields, owner, tool_scores, label_field)


def owner_of(parts: Sequence[LogPart], unnamed: str) -> tuple[Target, str] | None:
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
        p.conversation for p in parts if isinstance(p, Facts)
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


def _of(
    fields: Mapping[str, Any],
    owner: tuple[Target, str],
    tool_scores: Sequence[ToolScore],
    label_field: str | None,
) -> Iterator[ToolScore]:
    for path, value in _leaves(fields):
        is_label_field = label_field is not None and is_named(path, label_field)
        # a column may say again what a score of the tool says
        repeats = (
            not score.name or is_named(path, score.name) or score.value == value
            for score in tool_scores
        )
        if is_label_field or (is_likely(path) and not any(repeats)):
            yield ToolScore(*owner, value, path, COLUMN)


def likely_feedback(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of a row's short values that are named like feedback."""
    return (
        path for path, value in _leaves(fields) if is_likely(path) or _is_thumb_within(path, value)
    )


def _is_thumb_within(path: str, value: object) -> bool:
    """Return whether a value is a thumb in words inside an object that is named like feedback."""
    outer, dot, _ = path.rpartition(".")
    return bool(dot) and isinstance(value, str) and is_likely(outer) and is_usual(value)


@lru_cache(maxsize=4096)
def is_likely(path: str) -> bool:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path).casefold()
    apart = _APART.search(spaced) or _JUDGED.search(spaced)
    return bool(_LIKELY.search(spaced)) and not apart


def _leaves(
    fields: Mapping[str, Any],
    before: str = "",
    depth: int = 0,
) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        folded = letters(str(name))
        if folded in _WORDS or depth > DEEPEST:
            continue
        path = f"{before}{name}"
        # JSON text is opened only under names that hold further fields
        if isinstance(value, str) and _OPENED.search(folded):
            inner = parse(value)
        else:
            inner = value

        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{path}.", depth + 1)
        elif folded.endswith("tags") and isinstance(inner, list):
            yield from _tags(path, inner)
        elif _is_short(inner):
            yield path, inner


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip(" -")) and len(value) <= LONGEST
    return isinstance(value, bool | int | float) and value == value


def _tags(path: str, tags: Sequence[object]) -> Iterator[tuple[str, Any]]:
    """Yield tags such as `user_feedback:down`, and those that are a thumb themselves."""
    for tag in tags:
        name, mark, value = (
            re.split(r"([:=])", str(tag), maxsplit=1)
            if re.search("[:=]", str(tag))
            else (tag, "", "")
        )
        if mark and value:
            yield f"{path}.{name}", value.strip()
        elif isinstance(tag, str) and is_likely(tag) and is_usual(tag):
            yield path, tag
