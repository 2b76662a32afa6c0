"""Rows whose talk stands deeper: values with their types beside them, and lists of turns under other names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pollex.errors import BadInput
from pollex.formats.log_shapes.payloads import parse_nested_json
from pollex.formats.log_shapes.tools import find_export_format
from pollex.formats.log_shapes.turns import (
    PARTS_FIELD_NAMES,
    ROLE_FIELD_NAMES,
    TEXT_FIELD_NAMES,
    parse_role,
)
from pollex.text import JsonDict, JsonObject

_DYNAMODB_TYPE_KEYS = frozenset(("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"))
_MONGODB_TYPE_KEYS = frozenset(
    ("$oid", "$date", "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal", "$uuid")
)
_LOG_TEXT_FIELDS = ("message", "@message", "jsonPayload", "textPayload", "_raw", "log", "line")
"""Fields in which services of logs carry what a program wrote."""
_ID_FIELD_NAMES = ("id", "participantId", "participant_id", "userId", "user_id", "uuid")
"""Fields of a list of people by which messages name them."""
_PERSON_ROLE_FIELDS = ("role", "purpose", "type", "kind", "participantRole", "user_type")
"""Fields of a list of people that say which side somebody is on."""
MAX_SEARCH_DEPTH = 3
"""Objects inside one another in which a list of turns is looked for."""


def unwrap_typed_row(fields: JsonDict) -> JsonDict:
    """Return a row of DynamoDB's or MongoDB's typed JSON with plain values; any other row as it is."""
    if dict not in map(type, fields.values()):  # as in most tables
        return fields

    # a search in an index has each document under `_source`
    if "_index" in fields and isinstance(source := fields.get("_source"), dict):
        return unwrap_typed_row({"_id": fields.get("_id"), **source})

    # an export of DynamoDB puts each row under `Item`
    item = fields.get("Item")
    if (
        isinstance(item, dict)
        and len(fields) == 1
        and item
        and all(map(_is_dynamodb_value, item.values()))
    ):
        fields = item
    if fields and all(map(_is_dynamodb_value, fields.values())):
        return {name: _unwrap_dynamodb(value) for name, value in fields.items()}
    if any(
        isinstance(value, dict) and len(value) == 1 and not _MONGODB_TYPE_KEYS.isdisjoint(value)
        for value in fields.values()
    ):
        return {name: _unwrap_mongodb(value) for name, value in fields.items()}

    return fields


def name_speakers(fields: JsonDict) -> JsonDict:
    """Return a row whose messages name speakers by ids of a list beside them, with the roles of that list."""
    if [*map(type, fields.values())].count(list) < 2:  # as in most rows
        return fields

    lists = {name: value for name, value in fields.items() if _is_object_list(value)}
    for people_name, people in lists.items():
        for id_name in _ID_FIELD_NAMES:
            roles = {str(person.get(id_name)): _find_role(person) for person in people}
            if not {"user", "assistant"} <= {*roles.values()} or None in roles.values():
                continue
            for name, messages in lists.items():
                if name == people_name or not _are_without_roles(messages):
                    continue
                speaker = _find_speaker_field(messages, roles)
                if speaker is not None:
                    named = [{**item, "role": roles[str(item[speaker])]} for item in messages]
                    return {**fields, name: named}

    return fields


def _is_object_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _find_role(person: JsonObject) -> str | None:
    """Return the role of an entry of a list of people, in a field that is named so."""
    for name in _PERSON_ROLE_FIELDS:
        with suppress(BadInput):
            if isinstance(person.get(name), str):
                return parse_role(person[name])
    return None


def _are_without_roles(messages: list[JsonDict]) -> bool:
    return all(item.keys().isdisjoint(ROLE_FIELD_NAMES) for item in messages)


def _find_speaker_field(messages: list[JsonDict], roles: Mapping[str, str | None]) -> str | None:
    """Return the field whose value is, in each message, the id of one of the people."""
    for field in messages[0]:
        if all(isinstance(item.get(field), str | int) for item in messages) and all(
            str(item[field]) in roles for item in messages
        ):
            return field
    return None


def extract_carried_row(fields: JsonObject) -> JsonDict | None:
    """Return the row of a known export that a service of logs carries in one of its own; None for others."""
    # what somebody says is no row, whatever it looks like; most rows end here
    if fields.keys().isdisjoint(_LOG_TEXT_FIELDS) or not fields.keys().isdisjoint(ROLE_FIELD_NAMES):
        return None

    for name in _LOG_TEXT_FIELDS:
        value = fields.get(name)
        if isinstance(value, str) and not value.startswith("{"):
            continue
        row = parse_nested_json(value) if value else None
        if (
            isinstance(row, dict)
            and find_export_format(fields) is None
            and find_export_format(row) is not None
        ):
            return row

    return None


def _is_dynamodb_value(value: object) -> bool:
    return isinstance(value, dict) and len(value) == 1 and not _DYNAMODB_TYPE_KEYS.isdisjoint(value)


def _unwrap_dynamodb(value: Any) -> object:
    if not _is_dynamodb_value(value):
        return value

    [(kind, inner)] = value.items()
    if kind == "N":
        return _parse_number(inner)
    if kind == "NS":
        return [_parse_number(digits) for digits in inner]
    if kind == "NULL":
        return None
    if kind == "L":
        return [_unwrap_dynamodb(element) for element in inner]
    if kind == "M":
        return {name: _unwrap_dynamodb(field) for name, field in inner.items()}
    return inner


def _parse_number(text: object) -> object:
    try:
        number = float(str(text))
    except ValueError:
        return text

    if number.is_integer() and "." not in str(text):
        return int(number)
    return number


def _unwrap_mongodb(value: object) -> object:
    if isinstance(value, list):
        return [_unwrap_mongodb(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and not _MONGODB_TYPE_KEYS.isdisjoint(value):
        [(kind, inner)] = value.items()
        if kind.startswith("$number"):
            return _parse_number(inner)
        return _unwrap_mongodb(inner)

    return {name: _unwrap_mongodb(field) for name, field in value.items()}


def move_turns_to_usual_name(fields: JsonObject) -> JsonDict | None:
    """Return a row with its one list of turns, wherever it stands, under the usual name; None if there are none or two.

    Names of its own stay where they are: those of the object that holds the list go beside it.
    """
    turn_lists = list(_iterate_turn_lists(fields, (), 0))
    if len(turn_lists) != 1:
        return None

    path, turns, holder = turn_lists[0]
    # single values beside the list, such as an id, go with it
    neighbours = {}
    for name, value in holder.items():
        if name != path[-1] and not isinstance(value, list | dict):
            neighbours[name] = value

    row = {}
    for name, value in fields.items():
        if name != path[0]:
            row[name] = value

    return {**neighbours, **row, "messages": turns}


_SENT_PATH_PATTERN = re.compile(
    r"(^|[._])(inputs?|request|requestbody|prompts?|sent|query)([._]|$)|input_?messages|prompt_?messages"
)
_RECEIVED_PATH_PATTERN = re.compile(
    r"(^|[._])(outputs?|response|responsebody|completions?|answers?|received)([._]|$)|output_?messages"
)
"""Paths to what a model was sent, and to what came."""


def join_sides_to_turns(fields: JsonObject) -> JsonDict | None:
    """Return a row with what a model was sent and what came of it as one list of turns; None if it has no two sides."""
    turn_lists = list(_iterate_turn_list_paths(fields, (), 0))
    sent = []
    for path, turns in turn_lists:
        if _SENT_PATH_PATTERN.search(path) and not _RECEIVED_PATH_PATTERN.search(path):
            sent.append(turns)

    received = []
    for path, turns in turn_lists:
        if _RECEIVED_PATH_PATTERN.search(path) and not _SENT_PATH_PATTERN.search(path):
            received.append(turns)

    if len(sent) != 1 or len(received) != 1:
        return None

    before = sent[0]
    after = received[0]
    # what came may repeat all that was sent
    if after[: len(before)] == before:
        whole = after
    else:
        whole = [*before, *after]

    # both sides speak, and every role is known
    roles = {_find_message_role(turn) for turn in whole}
    if not {"user", "assistant"} <= roles or None in roles:
        return None

    rest = {}
    for name, value in fields.items():
        if _is_talk_metadata(name, value):
            rest[name] = value

    return {**rest, "messages": whole}


def _is_talk_metadata(name: str, value: object) -> bool:
    """Return whether a field of a row says something about the talk, and holds no part of it."""
    spelled = _spell_with_underscores(name)
    if not isinstance(value, list | dict) and (
        _SENT_PATH_PATTERN.search(spelled) or _RECEIVED_PATH_PATTERN.search(spelled)
    ):
        return False
    return not list(_iterate_turn_list_paths({name: value}, (), 0))


def _spell_with_underscores(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()


def _iterate_turn_list_paths(
    fields: JsonObject,
    path: tuple[str, ...],
    depth: int,
) -> Iterator[tuple[str, list[object]]]:
    """Yield paths to turns: lists of them, and choices of an interface."""
    for name, value in fields.items():
        # the value may be JSON text
        inner = parse_nested_json(value)
        here = (*path, _spell_with_underscores(name))
        if isinstance(inner, list):
            turns = [unwrap_message_turn(entry) for entry in inner]
        else:
            turns = []

        if turns and all(_find_message_role(turn) for turn in turns):
            yield ".".join(here), turns
        elif isinstance(inner, Mapping) and _find_message_role(unwrap_message_turn(inner)):
            yield ".".join(here), [unwrap_message_turn(inner)]
        elif isinstance(inner, Mapping) and depth < MAX_SEARCH_DEPTH:
            yield from _iterate_turn_list_paths(inner, here, depth + 1)
        elif (
            name == "choices"
            and isinstance(inner, list)
            and inner
            and isinstance(inner[0], Mapping)
        ):
            yield from _iterate_turn_list_paths(inner[0], here, depth + 1)


def unwrap_message_turn(value: object) -> object:
    """Return a turn whose names begin with `message.`, or that stands in an object `message`, with plain names."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("message"), Mapping) and "role" in value["message"]:
        return value["message"]
    if any(name.startswith("message.") for name in value):
        return {name.removeprefix("message."): inner for name, inner in value.items()}
    return value


def _iterate_turn_lists(
    fields: JsonObject,
    path: tuple[str, ...],
    depth: int,
) -> Iterator[tuple[tuple[str, ...], list[object], JsonObject]]:
    for name, value in fields.items():
        inner = parse_nested_json(value)
        if isinstance(inner, list):
            if _are_known_turns(inner):
                yield (*path, name), inner, fields
        elif isinstance(inner, Mapping) and depth < MAX_SEARCH_DEPTH:
            yield from _iterate_turn_lists(inner, (*path, name), depth + 1)


def _are_known_turns(values: Sequence[object]) -> bool:
    """Return whether all items are turns of known roles with words, of the user and of others."""
    if len(values) < 2:
        return False

    roles = [_find_message_role(unwrap_message_turn(value)) for value in values]
    return None not in roles and "user" in roles and "assistant" in roles


def _find_message_role(value: object) -> str | None:
    if not isinstance(value, Mapping) or not value.keys() & {
        *TEXT_FIELD_NAMES,
        *PARTS_FIELD_NAMES,
        "tool_calls",
    }:
        return None

    try:
        return parse_role(
            next(
                (value[name] for name in ROLE_FIELD_NAMES if name in value),
                None,
            )
        )
    except BadInput:
        return None
