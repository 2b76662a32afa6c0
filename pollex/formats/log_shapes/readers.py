"""The general log shapes, which no tool alone writes: each a `Reader` in `LOG_SHAPE_READERS`."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.conversations.logs import CONVERSATION_TIME_NAMES, TIME_FIELD_NAMES
from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import (
    is_time_value,
    iterate_plausible_times,
    parse_timestamp,
)
from pollex.formats.fields import CONVERSATION_ID_NAMES
from pollex.formats.log_shapes.choices import drop_unchosen
from pollex.formats.log_shapes.exports import Fields, unwrap_object
from pollex.formats.log_shapes.payloads import (
    REPLY_FIELD_NAMES,
    find_answer,
    make_system_turns,
    parse_nested_json,
    read_run_input,
)
from pollex.formats.log_shapes.turns import (
    ROLE_FIELD_NAMES,
    TEXT_FIELD_NAMES,
    extract_text,
    is_content_part,
    is_list_of_turns,
    join_filled_lines,
    parse_role,
    read_message_turns,
    read_turns,
)
from pollex.text import JsonDict, JsonObject, escape_controls

TURN_LIST_NAMES = ("messages", "turns", "dialogue", "dialog", "chat", "transcript", "conversation")
_TURN_LIST_NAME_SET = frozenset(TURN_LIST_NAMES)
TURN_POSITION_NAMES = (
    "turn",
    "turn_id",
    "turn_index",
    "turn_number",
    "index",
    "position",
    "seq",
    "order",
)
CALL_FIELD_NAMES = ("tool_calls", "tool_call_id")
QUESTION_FIELD_NAMES = (
    "request",
    "full_request",
    "prompt",
    "question",
    "query",
    "instruction",
    "user_input",
    "user_message",
    "input",
)
_ANSWER_NAME_SET = frozenset(REPLY_FIELD_NAMES)
TRACE_FIELD_NAMES = frozenset(
    ("trace_id", "span_id", "trace", "spans", "run_id", "metadata.span_kind")
)
"""Fields of traces, whose sides need more than these two fields to be read."""


@dataclass(frozen=True, slots=True)
class RowDraft:
    """The content of one row.

    Attributes:
        turns: All turns of the conversation, or the one turn of a row that is a turn.
        rest: The fields that the turns weren't read from; id and label are looked for here.
        position: Place of the turn in its conversation; None if its time or the log's order
            decides.
        left: Answers that nobody chose, which are no turns.
    """

    turns: tuple[Turn, ...]
    rest: JsonDict
    position: float | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class Reader:
    """One log shape.

    Attributes:
        name: For people.
        shape: What a row looks like, for people, on one line.
        recognises: Whether a row has this shape. No two readers recognise the same row.
        read: None for a row that is no conversation of its own; raises `BadInput` for one that
            can't be read.
        row_is_turn: Rows with one conversation id make a conversation together.
    """

    name: str
    shape: str
    recognises: Callable[[Fields], bool]
    read: Callable[[Fields], RowDraft | None]
    row_is_turn: bool = False


def read_turns_field(fields: Fields, name: str) -> RowDraft:
    """Read the turns from one field.

    Raises:
        BadInput: The field is missing or its turns can't be read.
    """
    # a path leads into an object, whose other fields stay beside the turns
    top, _, path = name.partition(".")
    if name not in fields and path and isinstance(inner := fields.get(top), Mapping):
        inside = read_turns_field(inner, path)
        return RowDraft(inside.turns, {**fields, top: inside.rest}, left=inside.left)
    if name not in fields:
        raise BadInput(
            f"the row has no field {name!r}",
            hint="name the field with the turns",
            option="messages_field",
        )

    listed = _parse_transcript_value(fields[name])
    chosen = drop_unchosen(listed)
    if isinstance(listed, list):
        left = len(listed) - len(chosen)
    else:
        left = 0

    other_fields = {}
    for key, value in fields.items():
        if key != name:
            other_fields[key] = value

    return RowDraft(
        read_turns(chosen),
        other_fields,
        left=left,
    )


def _parse_transcript_value(value: object) -> object:
    """Return the turns of a talk that is written as text."""
    if not isinstance(value, str):
        return value

    from pollex.formats.log_shapes.transcripts import (  # texts need it
        is_transcript,
        parse_transcript,
    )

    return (parse_transcript(value) or value) if is_transcript(value) else value


def _may_hold_turns(value: object) -> bool:
    """Return whether a field may hold turns: a list, an object with one, JSON text of these, or a talk as text."""
    if isinstance(value, Mapping):
        return isinstance(value.get("messages"), list)
    if is_list_of_turns(value):
        return True

    if not isinstance(value, str) or not value.strip():
        return False

    from pollex.formats.log_shapes.transcripts import is_transcript  # as above

    return value.lstrip().startswith('{"messages"') or is_transcript(value)


def _list_turn_fields(fields: Fields) -> list[str]:
    if _TURN_LIST_NAME_SET.isdisjoint(fields):  # as in most tables
        return []

    named = []
    for name in TURN_LIST_NAMES:
        if name in fields:
            named.append(name)

    holding = []
    for name in named:
        if _may_hold_turns(fields[name]):
            holding.append(name)

    # a talk as text beside its messages is the same talk once more
    listed = []
    for name in holding:
        if not isinstance(fields[name], str):
            listed.append(name)

    # only texts have usual names: a list under another name is the fuller record
    if holding and not listed and (other := _find_longest_turn_list(fields)):
        return [other]
    return listed or holding or [name for name in named if fields[name] is None]


def _find_longest_turn_list(fields: Fields) -> str | None:
    """Return the longest of the lists of turns under other names; None if there are none."""
    lists = {}
    for name, value in fields.items():
        if isinstance(value, list):
            lists[name] = value

    turns = {}
    for name, value in lists.items():
        if _are_all_spoken(value):
            turns[name] = len(value)

    return max(turns, key=lambda name: turns[name], default=None)


def _are_all_spoken(items: Sequence[object]) -> bool:
    """Return whether all items of a list are said by somebody."""
    spoken = all(isinstance(turn, Mapping) and "role" in turn for turn in items)
    return len(items) > 1 and spoken


def _read_messages_row(fields: Fields) -> RowDraft:
    candidates = _list_turn_fields(fields)
    if len(candidates) > 1:
        both = " and ".join(candidates)
        raise BadInput(
            f"turns may be in {both}",
            hint="say which",
            option={"messages_field": candidates[0]},
        )

    draft = _add_answer(read_turns_field(fields, candidates[0]))
    # a system prompt beside the messages comes first, unless they have one
    if any(turn.role == "system" for turn in draft.turns) or not _is_system_prompt(
        fields.get("system")
    ):
        return draft

    rest = {}
    for name, value in draft.rest.items():
        if name != "system":
            rest[name] = value

    return RowDraft((*make_system_turns(fields), *draft.turns), rest, left=draft.left)


def _add_answer(draft: RowDraft) -> RowDraft:
    # after a last turn of the user, the answer may be a field of its own
    answer = None
    if draft.turns and draft.turns[-1].role != "assistant":
        answer = find_answer(draft.rest)
    if answer is None:
        return draft

    name, turns = answer
    rest = {}
    for key, value in draft.rest.items():
        if key != name:
            rest[key] = value

    return RowDraft(draft.turns + turns, rest, left=draft.left)


def _is_system_prompt(system: object) -> bool:
    """Return whether the field is the text of a system prompt, and not a name."""
    return isinstance(system, list) or (isinstance(system, str) and " " in system.strip())


def _has_gemini_contents(fields: Fields) -> bool:
    contents = fields.get("contents")
    first = None
    if isinstance(contents, list) and contents:
        first = contents[0]

    return isinstance(first, Mapping) and "parts" in first


def _read_gemini_row(fields: Fields) -> RowDraft:
    # Gemini's messages without a role are the user's
    messages = []
    for message in fields["contents"]:
        messages.append({"role": "user", **message} if isinstance(message, Mapping) else message)

    turns = read_turns(messages)
    rest = {}
    for name, value in fields.items():
        if name not in ("contents", "systemInstruction"):
            rest[name] = value

    return _add_answer(RowDraft((*make_system_turns(fields), *turns), rest))


def _find_first_name(fields: Fields, names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in fields:
            return name
    return None


def _is_turn_row(fields: Fields) -> bool:
    text = _find_first_name(fields, TEXT_FIELD_NAMES)
    return (
        _find_first_name(fields, ROLE_FIELD_NAMES) is not None
        and text is not None
        and not isinstance(fields[text], dict)
    )


def _parse_position(name: str, value: object) -> float:
    try:
        if isinstance(value, int | float | str):
            position = float(value)
        else:
            position = math.nan
    except (ValueError, OverflowError):
        position = math.nan

    if not math.isfinite(position):
        raise BadInput(
            f"{name} is {value!r:.40}, not a number",
            hint="number the turns in the order they were said",
        )

    return position


def _parse_parts(content: object) -> object:
    """Return the parts of a message that stand in a cell as JSON; a text that holds none is what was said."""
    if not isinstance(content, str) or content.lstrip()[:1] not in ("{", "["):
        return content

    parsed = parse_nested_json(content)
    if isinstance(parsed, Mapping):
        parts = parsed.get("parts")
    else:
        parts = parsed

    # JSON is the message's content only if all of it are parts
    typed = isinstance(parts, list) and all(
        is_content_part(part) and "type" in part for part in parts
    )
    if parts and typed:
        return parts
    return content


def _read_turn_row(fields: Fields) -> RowDraft:
    role, text, position = (
        _find_first_name(fields, names)
        for names in (ROLE_FIELD_NAMES, TEXT_FIELD_NAMES, TURN_POSITION_NAMES)
    )
    if role is None or text is None:
        raise BadInput(
            "the row has no role or no text",
            hint="give every row of the table both",
        )

    # calls of tools stand in columns of their own
    calls = {}
    for name in CALL_FIELD_NAMES:
        if fields.get(name) not in (None, ""):
            calls[name] = fields[name]

    message = {"role": fields[role], "content": _parse_parts(fields[text])}
    # most rows are plain text, and take the short way
    if calls or not isinstance(message["content"], str):
        turns = read_message_turns({**message, **calls})
    else:
        turns = (Turn(role=parse_role(fields[role]), content=extract_text(fields[text])),)

    rest = {}
    for key, value in fields.items():
        if key not in (role, text, position, *CALL_FIELD_NAMES):
            rest[key] = value

    return RowDraft(
        turns=turns,
        rest=rest,
        position=None if position is None else _parse_position(position, fields[position]),
    )


def find_time_field(fields: Fields) -> str | None:
    """Return the usual column that says when a row's turn was said."""
    return _find_first_name(fields, TIME_FIELD_NAMES)


_AMBIGUOUS_DATE_PATTERN = re.compile(r"\s*\d{1,2}[/-]\d{1,2}[/-]")


def detect_date_orders(rows: Iterable[Fields]) -> list[bool]:
    """Return how dates such as 3/4/2026 in all rows can be read: True if with the day first, False with the month."""
    dates = set()
    for row in rows:
        if (name := find_time_field(row)) and _AMBIGUOUS_DATE_PATTERN.match(str(row[name])):
            dates.add(str(row[name]))

    # an order holds only if every date can be read with it
    times = {}
    for first in (True, False):
        times[first] = [parse_timestamp(date, first) for date in dates if is_time_value(date)]

    orders: list[bool] = []
    for first, moments in times.items():
        if moments and None not in moments:
            orders.append(first)

    return orders


def iterate_metadata_times(metadata: Fields) -> Iterator[float]:
    """Yield the times in usual fields of a conversation's metadata and one level down, in seconds since 1970."""
    places = (metadata, unwrap_object(metadata.get("metadata")))
    values = (place[name] for place in places for name in CONVERSATION_TIME_NAMES if name in place)
    times = chain.from_iterable(value if isinstance(value, list) else [value] for value in values)
    return iterate_plausible_times(parse_timestamp(time) for time in times)


def _find_question_field(fields: Fields) -> str | None:
    for name in QUESTION_FIELD_NAMES:
        if name in fields and fields[name] not in (None, "", [], {}):
            return name
    return None


def _is_exchange_row(fields: Fields) -> bool:
    """Return whether a row has a question and an answer, and neither a list of messages nor a turn."""
    if (
        _ANSWER_NAME_SET.isdisjoint(fields)
        or not TRACE_FIELD_NAMES.isdisjoint(fields)
        or _find_question_field(fields) is None
    ):
        return False
    return not _list_turn_fields(fields) and not _is_turn_row(fields)


def _read_exchange_row(fields: Fields) -> RowDraft:
    name = _find_question_field(fields) or ""
    value = fields[name]
    # a task, and what it is about, as in instruction data
    if name == "instruction" and isinstance(fields.get("input"), str):
        value = join_filled_lines([str(value), fields["input"]])

    side = read_run_input(value, "words")
    answer = find_answer(fields)
    if side is None or answer is None:
        lacking = name if side is None else "the answer"
        raise BadInput(
            f"{lacking} can't be read as words",
            hint="give both what was asked and what was answered",
        )

    # a system prompt may stand in the row and in the history; it counts once
    before = make_system_turns(unwrap_object(value))
    turns = (
        *make_system_turns(fields),
        *before,
        *_read_earlier_turns(fields.get("history")),
        *side.turns,
    )
    system_turns = set()
    for turn in turns:
        if turn.role == "system":
            system_turns.add(turn)

    distinct_turns = []
    for n, turn in enumerate(turns):
        if turn not in system_turns or turn not in turns[:n]:
            distinct_turns.append(turn)

    used = (name, answer[0], "history", "instruction", "input", "system")
    rest = {}
    for key, inner in fields.items():
        if key not in used:
            rest[key] = inner

    return RowDraft((*distinct_turns, *answer[1]), rest)


def _read_earlier_turns(history: object) -> tuple[Turn, ...]:
    earlier: Any = parse_nested_json(history)
    if not isinstance(earlier, list) or not earlier:
        return ()

    # earlier turns may be pairs of a question and an answer, of which one may be empty
    if all(isinstance(pair, list) and len(pair) == 2 for pair in earlier):
        messages = []
        for question, answer in earlier:
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": answer})

        earlier = []
        for message in messages:
            if message["content"]:
                earlier.append(message)

    return read_turns(earlier)


LOG_SHAPE_READERS = (
    Reader(
        "messages",
        'a row a conversation, "messages": [{"role": "user", "content": "…"}, …]',
        recognises=lambda fields: bool(_list_turn_fields(fields)),
        read=_read_messages_row,
    ),
    Reader(
        "ShareGPT",
        'a row a conversation, "conversations": [{"from": "human", "value": "…"}, …]',
        recognises=lambda fields: is_list_of_turns(fields.get("conversations")),
        read=lambda fields: read_turns_field(fields, "conversations"),
    ),
    Reader(
        "Gemini",
        'a row a conversation, "contents": [{"role": "user", "parts": [{"text": "…"}]}, …]',
        recognises=_has_gemini_contents,
        read=_read_gemini_row,
    ),
    Reader(
        "flat table",
        "a row a turn: conversation_id, turn, role, text",
        recognises=_is_turn_row,
        read=_read_turn_row,
        row_is_turn=True,
    ),
    Reader(
        "request and response",
        'a row an exchange, "prompt": "…", "response": "…", also as requests and responses of an interface',
        recognises=lambda fields: (
            _is_exchange_row(fields) and fields.keys().isdisjoint(CONVERSATION_ID_NAMES)
        ),
        read=_read_exchange_row,
    ),
    Reader(
        "table of exchanges",
        "a row an exchange: conversation_id, prompt, response",
        recognises=lambda fields: (
            _is_exchange_row(fields) and not fields.keys().isdisjoint(CONVERSATION_ID_NAMES)
        ),
        read=_read_exchange_row,
        row_is_turn=True,
    ),
)


class UnknownShape(BadInput):
    """A row that no reader knows.

    Attributes:
        near: What it looks like, and what it lacks for that.
        label: What stands in a row without words that may label a conversation.
    """

    near = ""
    label = ""


def find_reader(fields: JsonObject) -> Reader:
    """Return the reader of a row's shape.

    Raises:
        NoShape: No shape fits.
        BadInput: More than one does.
    """
    fitting = []
    for reader in LOG_SHAPE_READERS:
        if reader.recognises(fields):
            fitting.append(reader)

    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        shapes = " and ".join(reader.name for reader in fitting)
        raise BadInput(
            f"the row has the shape of {shapes}",
            hint="say which field holds the turns",
            option="messages_field",
        )

    shapes = "; ".join(f"{reader.name} ({reader.shape})" for reader in LOG_SHAPE_READERS)
    have = escape_controls(", ".join(list(fields)[:12]), 200) or "no field"
    raise UnknownShape(
        f"no known shape: the row has {have}",
        hint=f"known shapes: {shapes}",
    )
