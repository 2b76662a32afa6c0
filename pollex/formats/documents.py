"""Conversations that stand deeper in a JSON document: in a list inside objects, or in an object by their ids."""

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from pollex.formats.log_shapes.turns import TEXT_FIELD_NAMES
from pollex.formats.names import is_named_as_part
from pollex.text import JsonDict, JsonObject

MAX_SEARCH_DEPTH = 3
"""Objects inside one another in which conversations are looked for."""
MIN_TURNS_IN_LIST = 2
"""Items that the lists of turns of most conversations have."""
WORDS_OF_EXCHANGE = 2
"""Texts of a pair: the question and the answer."""

_SPEECH_PATTERN = re.compile(
    r"[^\W\d_]+\W+[^\W\d_]+|[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af]{2}"
)
"""Two words, or letters of a language that writes without spaces."""


def find_rows_within_json_document(document: JsonObject) -> list[JsonDict] | None:
    """Return the conversations, or else the turns, that an unknown document holds; None if it is one itself."""
    # whole conversations first; turns only where nothing holds those
    tables = [list(_iterate_objects_by_id(document)), *_iterate_object_tables(document, 0)]
    talks = []
    for rows in tables:
        if len(rows) > 1 and are_rows_conversations(rows):
            talks.append(rows)

    if talks:
        return [_convert_turns_by_key_to_list(row) for row in talks[0]]

    turns = []
    for rows in _iterate_object_tables(document, 1):
        if len(rows) > 1 and _has_spoken_items(rows) and _has_conversation_column(rows):
            turns.append(rows)

    return max(turns, key=len) if turns else None


def _convert_turns_by_key_to_list(row: JsonDict) -> JsonDict:
    """Return a talk whose turns stand in an object, under keys that a database made, with a list of them."""
    listed = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and _has_spoken_items(
            turns := list(_iterate_objects_by_id(value))
        ):
            listed[name] = turns

    return {**row, **listed}


def add_fields_from_objects_keyed_by_id(rows: list[Any], beside: JsonObject) -> list[Any]:
    """Return rows with what stands in an object of values by their ids beside the list: `{"ratings": {"c1": "up"}}`."""
    by_name = {}
    for name, values in beside.items():
        if _may_be_values_by_id(values):
            by_name[name] = values

    objects = by_name and all(isinstance(row, dict) for row in rows)
    id_name = next(
        (name for name in ("id", "_id") if objects and all(name in row for row in rows)),
        "",
    )
    if not id_name:
        return rows

    # objects whose keys are ids of rows, under names that no row has
    ids = {str(row[id_name]) for row in rows}
    joined = {}
    for name, values in by_name.items():
        if ids.issuperset(values) and name not in rows[0]:
            joined[name] = values

    joined_rows = []
    for row in rows:
        joined_rows.append(
            {**row, **{name: values.get(str(row[id_name])) for name, values in joined.items()}}
        )

    return joined_rows


def _may_be_values_by_id(values: object) -> bool:
    if not isinstance(values, dict) or not values:
        return False
    return not any(isinstance(value, list) for value in values.values())


def _has_conversation_column(rows: list[JsonDict]) -> bool:
    """Return whether a column names the conversations of turns: one value for several, and several values."""
    for name, value in rows[0].items():
        if (
            isinstance(value, str | int)
            and is_named_as_part(name, "conversation")
            and not is_named_as_part(name, "text")
        ):
            values = [row.get(name) for row in rows]
            if (
                all(isinstance(value, str | int) for value in values)
                and 1 < len({*values}) <= len(rows) / 2
            ):
                return True

    return False


def _iterate_object_tables(value: JsonObject, depth: int) -> Iterator[list[JsonDict]]:
    """Yield lists of objects, and objects of objects, that stand in an object; the outer ones first."""
    for inner in value.values():
        if isinstance(inner, list) and inner and all(isinstance(entry, dict) for entry in inner):
            yield inner

    for inner in value.values():
        if isinstance(inner, Mapping) and depth < MAX_SEARCH_DEPTH:
            if rows := list(_iterate_objects_by_id(inner)):
                yield rows
            yield from _iterate_object_tables(inner, depth + 1)


def _iterate_objects_by_id(value: JsonObject) -> Iterator[JsonDict]:
    """Yield the objects of an object of objects that are alike, each with its name as its id."""
    rows = list(value.values())
    # an object with a list of turns under each id
    if len(rows) > 1 and all(isinstance(row, list) for row in rows):
        if any(rows) and all(isinstance(turn, dict) for row in rows for turn in row):
            for name, row in value.items():
                if row:
                    yield {"id": name, "messages": row}

        return

    # turns by keys that a database made, under the id of their talk
    if len(rows) > 1 and all(isinstance(row, dict) and _are_turns_by_key(row) for row in rows):
        for name, row in value.items():
            yield {"id": name, "messages": list(row.values())}
        return

    if len(rows) > 1 and all(isinstance(row, dict) for row in rows):
        # objects are alike if all of them share a name
        common = set.intersection(*(set(row) for row in rows))
        if common:
            for name, row in value.items():
                yield {"id": name, **row}


def _are_turns_by_key(values: JsonObject) -> bool:
    """Return whether all values of an object are objects in which somebody says something, with names in common."""
    turns = list(values.values())
    if not turns or not all(isinstance(turn, dict) for turn in turns):
        return False
    return bool(set.intersection(*map(set, turns))) and all(map(_has_turn_text, turns))


def _has_turn_text(turn: JsonObject) -> bool:
    return any(isinstance(turn.get(name), str) for name in TEXT_FIELD_NAMES)


def are_rows_conversations(rows: list[JsonDict]) -> bool:
    """Return whether rows are conversations: most hold a list of turns in which something is said."""
    sizes = []
    for row in rows:
        lengths = []
        for listed in _iterate_object_lists(row, 0):
            if _has_spoken_items(listed):
                lengths.append(len(listed))

        sizes.append(
            max(
                lengths,
                default=0,
            )
        )

    return bool(sizes) and min(sizes) > 0 and median(sizes) >= MIN_TURNS_IN_LIST


def _iterate_object_lists(value: object, depth: int) -> Iterator[list[Any]]:
    """Yield the lists of objects in a row, and the words of its lists of pairs."""
    if isinstance(value, Mapping) and depth <= MAX_SEARCH_DEPTH:
        for inner in value.values():
            if (
                isinstance(inner, list)
                and inner
                and all(isinstance(entry, dict) for entry in inner)
            ):
                yield inner
            elif _are_exchanges(inner):
                yield [words for exchange in inner for words in exchange]
            # turns may stand in an object under keys that a database made
            elif isinstance(inner, Mapping) and (rows := list(_iterate_objects_by_id(inner))):
                yield rows

            yield from _iterate_object_lists(inner, depth + 1)


def _are_exchanges(listed: object) -> bool:
    """Return whether a list has exchanges in pairs: what was asked, and what was answered."""
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(
            isinstance(pair, list)
            and len(pair) == WORDS_OF_EXCHANGE
            and all(isinstance(words, str) for words in pair)
            for pair in listed
        )
    )


def _has_spoken_items(listed: Sequence[object]) -> bool:
    """Return whether some of a list's items say something."""
    return any(_contains_spoken_text(item, 0) for item in listed)


def _contains_spoken_text(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return bool(_SPEECH_PATTERN.search(value[:200]))
    if depth > MAX_SEARCH_DEPTH:
        return False
    if isinstance(value, Mapping):
        value = list(value.values())

    return isinstance(value, list) and any(_contains_spoken_text(part, depth + 1) for part in value)
