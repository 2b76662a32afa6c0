"""JSON and JSON lines, read strictly.

DuckDB's reader gives up a whole file for one bad line, takes an id like `2024-01-01` for a date and
mixes the types of 1 and "1"; Python's keeps the last of two equal keys. Here every line stands for
itself, values stay what they are, and a line with two equal keys or nested deeper than `MAX_JSON_DEPTH`
is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.bounds import TooLongRow
from pollex.formats.log_shapes.readers import LOG_SHAPE_READERS
from pollex.formats.log_shapes.tools import find_export_format
from pollex.formats.log_shapes.turns import ROLE_FIELD_NAMES, TEXT_FIELD_NAMES, is_responses_item
from pollex.formats.log_shapes.unfolded import extract_carried_row
from pollex.formats.names import is_named_as_part
from pollex.text import JsonDict, JsonObject, parse_json

MIN_YAML_SIZE_TO_LIMIT_ALIASES = 4_000_000
MAX_YAML_ALIAS_EXPANSION_FACTOR = 20
"""Parts and characters of YAML with its aliases written out: so many, or so many times its characters."""
ENVELOPE_LIST_NAMES = (
    *(
        "conversations",
        "data",
        "runs",
        "rows",
        "items",
        "traces",
        "samples",
        "feedback_data",
        "examples",
        "content",
    ),
    *("tickets", "threads", "result", "payload", "value", "Items"),
)
"""Names of lists whose items are rows, whatever stands beside them."""
_PAGE_FIELD_WORDS = """
    object has_more first_id last_id meta next_cursor next_page_token limit page size total next count type sortableby
    export_info pages total_count next_page previous_page prev_page links page_info nextcursor nextpagetoken pageinfo
    per_page total_pages previous after_cursor before_cursor after_url before_url end_of_stream end_time facets cursor
    has_next has_next_page hasmore hasnextpage offset ok response_metadata
    @odata.context @odata.count @odata.nextlink code status success message
"""
PAGINATION_FIELD_NAMES = frozenset(_PAGE_FIELD_WORDS.split())
"""What stands beside the list in an answer of an interface, in lower case."""
_MESSAGE_OWNER_WORDS = "conversation_id conversationId session_id sessionId thread_id threadId chatId chat_id ticket_id"
MESSAGE_OWNER_NAMES = frozenset(_MESSAGE_OWNER_WORDS.split())
"""Fields of a message that name its conversation."""


def iterate_json_lines(source: str, lines: Iterable[str]) -> Iterator[LogRow | BadRow]:
    """Yield one row for each line; unreadable lines become bad rows, blank ones are skipped."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if isinstance(line, TooLongRow):
            yield BadRow(
                source,
                number,
                "a row of more than 32 MB",
                "split or remove it",
            )
            continue

        try:
            value = parse_json(line.rstrip())
        except ValueError as error:
            yield BadRow(
                source,
                number,
                f"not a JSON line: {_describe_parse_error(error)}",
                "correct or remove the line",
            )
            continue

        yield from iterate_rows_of_json_value(source, number, value)


def iterate_rows_of_json_value(
    source: str, number: int, value: object
) -> Iterator[LogRow | BadRow]:
    """Yield the rows of the value of a line: one, or those of a page of them."""
    items, beside = _extract_page(value) or ([value], {})
    for item in items:
        yield _make_row(source, number, item, beside)


def iterate_rows_of_json_document(source: str, text: str) -> Iterator[LogRow | BadRow]:
    """Yield the items of a JSON list, possibly in an envelope such as `{"data": […]}`.

    A single object is one row; so is each of several one after another, written over several lines.

    Raises:
        BadInput: The text isn't JSON; no part of it can be trusted then.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        if parts := _parse_concatenated_json(text):
            pages = [_extract_page(part) or ([part], {}) for part in parts]
            rows = [(item, beside) for items, beside in pages for item in items]
            for number, row in enumerate(rows, start=1):
                yield _make_row(source, number, *row)
            return

        raise BadInput(
            f"not JSON: {_describe_parse_error(error)}",
            where=source,
            hint="correct the file, or use JSON lines",
        ) from None

    items, beside = extract_rows_from_json_envelope(value)
    for number, item in enumerate(items, start=1):
        yield _make_row(source, number, item, beside)


def iterate_yaml_rows(source: str, text: str) -> Iterator[LogRow | BadRow]:
    """Yield the items of YAML as those of the same JSON; several documents are several rows.

    Raises:
        BadInput: The text isn't YAML, or too long, also with what its aliases stand for.
    """
    import yaml  # other logs don't need it

    if isinstance(text, TooLongRow):
        what = "YAML of more than 256 MB"
        raise BadInput(what, where=source, hint="write it as JSON lines, one row each")
    try:
        documents = list(_iterate_yaml_documents(source, text))
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        hint = "correct the file, or use JSON lines"
        raise BadInput(f"not YAML: {reason:.200}", where=source, hint=hint) from None
    items, beside = extract_rows_from_json_envelope(
        documents[0] if len(documents) == 1 else documents
    )
    for number, item in enumerate(items, start=1):
        yield _make_row(source, number, item, beside)


def _iterate_yaml_documents(source: str, text: str) -> Iterator[Any]:
    from pollex.formats.yaml_nodes import (
        count_yaml_size_with_aliases_expanded,  # YAML alone needs it
    )

    loader = _make_yaml_loader()(text)
    most = max(MIN_YAML_SIZE_TO_LIMIT_ALIASES, MAX_YAML_ALIAS_EXPANSION_FACTOR * len(text))
    size = 0.0
    try:
        while loader.check_node():
            # aliases may stand for far more than the file has: that is counted before it is read
            node = loader.get_node()
            size += count_yaml_size_with_aliases_expanded(node)
            if size > most:
                raise BadInput(
                    "YAML whose aliases stand for far more than the file has",
                    where=source,
                    hint="write it without aliases (&name, *name), or as JSON lines",
                )

            yield loader.construct_document(node)
    finally:
        loader.dispose()


@cache
def _make_yaml_loader() -> Any:
    """Return what loads YAML without dates and without yes and no as true and false: they stay what was written."""
    import yaml

    class TextLoader(yaml.SafeLoader):  # type: ignore[misc]  # the package has no types
        pass

    left_out = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    TextLoader.yaml_implicit_resolvers = {
        sign: [(tag, pattern) for tag, pattern in resolvers if tag not in left_out]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return TextLoader


def _parse_concatenated_json(text: str) -> list[Any]:
    documents = []
    decoder = json.JSONDecoder()
    start = 0
    try:
        while start < len(text):
            if text[start].isspace():
                start += 1
                continue
            # where the object ends; then the same text is read strictly
            _, end = decoder.raw_decode(text, start)
            documents.append(parse_json(text[start:end]))
            start = end
    except (ValueError, RecursionError):
        return []

    if all(isinstance(value, dict) for value in documents):
        return documents
    return []


def extract_rows_from_json_envelope(value: object) -> tuple[list[Any], JsonObject]:
    """Return the rows in a JSON value, and the other fields of their envelope.

    A list of messages is one conversation, also in the envelope of an API response.
    """
    if isinstance(value, list):
        # a list of pages, as a program wrote that fetched one after the other
        pages = [_extract_page(entry) for entry in value]
        if pages and all(pages):
            # the last page tells whether more follow
            return [row for page in pages if page for row in page[0]], (pages[-1] or ([], {}))[1]
        return ([{"messages": value}] if _are_messages_of_one_talk(value) else value), {}
    if not isinstance(value, dict):
        return [value], {}
    if (rows := _transpose_columns(value)) is not None:
        return rows, {}
    # the answer of a search in an index
    hits = value.get("hits")
    if isinstance(hits, dict) and isinstance(hits.get("hits"), list):
        return hits["hits"], {}
    if page := _extract_page(value):
        return page

    # an envelope around one conversation
    alone = value.get("data")
    if (
        isinstance(alone, dict)
        and find_export_format(alone)
        and {name.casefold() for name in value} <= {"data", "error", *PAGINATION_FIELD_NAMES}
    ):
        return [alone], {}

    # an envelope around a list of rows
    if isinstance(value.get("data"), dict) and "examples" in value["data"]:
        inner = value["data"]
    else:
        inner = value

    lists = []
    for name in ENVELOPE_LIST_NAMES:
        if isinstance(inner.get(name), list) and "role" not in inner:
            lists.append(name)

    # A single ShareGPT conversation has a list named like an envelope; its items are turns.
    if len(lists) == 1 and not any(_is_sharegpt_turn(item) for item in inner[lists[0]]):
        return _unwrap_envelope(value, inner, lists[0])

    # an object with one list that has owners, or is the export of a tool
    counts = all(isinstance(field, list | int | None) for field in value.values())
    owned = []
    for name, items in value.items():
        if _are_rows_with_owner(items) or (counts and _are_export_rows(items)):
            owned.append(name)

    if len(owned) == 1 and not find_export_format(value):
        return _unwrap_envelope(value, value, owned[0])

    # a list of whole conversations, or of rows of a known export
    tables = []
    for name, items in value.items():
        if _are_conversations(items) or _are_export_rows(items):
            tables.append(name)

    if len(tables) == 1 and not find_export_format(value) and not _is_known_row(value):
        return _unwrap_envelope(value, value, tables[0])
    # rows of a known export may stand deeper, beside other tables of the tool
    deeper = []
    for inner in value.values():
        if isinstance(inner, dict):
            deeper += [items for items in inner.values() if _are_export_rows(items)]

    if len(deeper) == 1 and not _is_known_row(value):
        return deeper[0], {}
    # rows may stand deeper; else the object is one row
    if _is_known_row(value):
        return [value], {}

    from pollex.formats.documents import find_rows_within_json_document  # documents alone need it

    return find_rows_within_json_document(value) or [value], {}


def _transpose_columns(value: JsonObject) -> list[JsonDict] | None:
    """Return the rows of a table whose columns are objects by row number, as pandas writes it; None for others."""
    columns = list(value.values())
    if len(columns) < 2 or not all(isinstance(column, dict) and column for column in columns):
        return None

    numbers = list(columns[0])
    if not all(number.isdecimal() for number in numbers):
        return None
    if any(column.keys() != columns[0].keys() for column in columns[1:]):
        return None
    return [{name: value[name][number] for name in value} for number in numbers]


def _are_conversations(items: object) -> bool:
    """Return whether a list's items are conversations: each has a list of turns."""
    if (
        not isinstance(items, list)
        or not items
        or not all(isinstance(item, dict) for item in items)
    ):
        return False

    return all(any(_are_all_turns(inner) for inner in item.values()) for item in items)


def _are_export_rows(items: object) -> bool:
    """Return whether a list's items are rows of an export that is known."""
    listed = items if isinstance(items, list) else []
    return bool(listed) and all(
        isinstance(item, dict) and (find_export_format(item) or extract_carried_row(item))
        for item in listed[:3]
    )


def _are_rows_with_owner(items: object) -> bool:
    """Return whether a list's items are rows that name their conversation, of which there are several."""
    listed = items if isinstance(items, list) else []
    rows = []
    for item in listed:
        if isinstance(item, dict):
            rows.append(item)

    if len(rows) < len(listed) or not rows:
        return False

    names = set.intersection(*(set(row) for row in rows)) & MESSAGE_OWNER_NAMES
    return any(len({str(row[name]) for row in rows}) > 1 for name in names)


def _are_all_turns(items: object) -> bool:
    if not isinstance(items, list) or not items:
        return False
    return all(isinstance(item, dict) and item.keys() & set(ROLE_FIELD_NAMES) for item in items)


def _extract_page(value: object) -> tuple[list[Any], JsonObject] | None:
    """Return the rows of a value that is nothing but a page of a list, or nothing but tables; None for others."""
    if not isinstance(value, dict):
        return None

    for name, inner in value.items():  # most rows end here
        if not isinstance(inner, list) and name.casefold() not in PAGINATION_FIELD_NAMES:
            return None

    names = []
    for name in value:
        if name.casefold() not in PAGINATION_FIELD_NAMES:
            names.append(name)

    if not names or not all(_is_row_list(value[name], name) for name in names):
        return None

    # rows that name their conversation, or are of a known export
    owned = any(
        item.keys() & MESSAGE_OWNER_NAMES or find_export_format(item)
        for name in names
        for item in value[name][:1]
    )
    # an object that a reader knows is a row itself, whatever lists it has
    if not set(names) <= set(ENVELOPE_LIST_NAMES) and (
        find_export_format(value) or (not owned and _is_known_row(value))
    ):
        return None
    if len(names) == 1:
        return _unwrap_envelope(value, value, names[0])

    # of several lists, those whose first item a reader knows
    known_names = []
    for name in names:
        if value[name] and _is_known_row(value[name][0]):
            known_names.append(name)

    if known_names:
        return ([row for name in known_names for row in value[name]], {})
    return None


def _is_known_row(row: JsonObject) -> bool:
    return find_export_format(row) is not None or any(
        reader.recognises(row) for reader in LOG_SHAPE_READERS
    )


def _is_row_list(value: object, name: str) -> bool:
    """Return whether a list's items are rows, and not the turns of one conversation."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return False
    if name in ENVELOPE_LIST_NAMES:
        return not any(_is_sharegpt_turn(item) for item in value)
    return all(
        item.keys() & MESSAGE_OWNER_NAMES or not item.keys() & set(ROLE_FIELD_NAMES)
        for item in value
    )


def _unwrap_envelope(
    value: JsonObject,
    inner: JsonObject,
    name: str,
) -> tuple[list[Any], JsonObject]:
    beside = {}
    for other, inner_value in value.items():
        if other != name:
            beside[other] = inner_value

    from pollex.formats.documents import (
        add_fields_from_objects_keyed_by_id,  # documents alone need it
    )

    items = add_fields_from_objects_keyed_by_id(inner[name], beside)
    if not _are_messages_of_one_talk(items):
        return items, beside

    # the assistant begins and somebody else ends: the newest message is first
    newest_first = items[0].get("role", "assistant") == "assistant" and items[-1].get(
        "role"
    ) not in (None, "assistant")
    return [{**beside, "messages": items[::-1] if newest_first else items}], beside


def _are_messages_of_one_talk(items: list[Any]) -> bool:
    if not items or not all(isinstance(item, dict) and _is_usual_message(item) for item in items):
        return False
    # where a field names conversations, the items are rows of several
    if any(_names_conversations(items, name) for name in items[0]):
        return False

    from pollex.formats.log_shapes.dialects import (
        is_dialect_message,  # lists of messages alone need it
    )

    ids = []
    for item in items:
        if item.get("id") is not None:
            ids.append(str(item["id"]))

    spoken = []
    for item in items:
        if "role" in item or is_dialect_message(item):
            spoken.append(item)

    return bool(spoken) and len(set(ids)) == len(ids)


def _names_conversations(items: list[JsonDict], name: str) -> bool:
    """Return whether a field names the conversation of each message, by its name or by blocks that users begin."""
    values = [item.get(name) for item in items]
    if name in (*ROLE_FIELD_NAMES, *TEXT_FIELD_NAMES) or not all(
        isinstance(value, str | int) for value in values
    ):
        return False
    if is_named_as_part(name, "conversation") and not is_named_as_part(name, "time"):
        return True

    # blocks of equal values that users begin are conversations
    starts = []
    for n, value in enumerate(values):
        if n == 0 or value != values[n - 1]:
            starts.append(n)

    begun_by_users = all(str(items[n].get("role")) in ("user", "human") for n in starts)
    return 1 < len(starts) == len(set(values)) < len(items) / 1.5 and begun_by_users


def _is_usual_message(item: JsonDict) -> bool:
    from pollex.formats.log_shapes.dialects import is_dialect_message  # as above

    if is_dialect_message(item):
        return True
    if item.keys() & MESSAGE_OWNER_NAMES:
        return False

    return (
        {"role", "content"} <= item.keys()
        or {"role", "parts"} <= item.keys()
        or is_responses_item(item.get("type"))
    )


def _is_sharegpt_turn(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= {"from", "value"}


def _make_row(
    source: str,
    number: int,
    value: object,
    beside: JsonObject,
) -> LogRow | BadRow:
    if isinstance(value, dict):
        return LogRow(source, number, value, beside)

    return BadRow(
        source,
        number,
        "not a JSON object",
        "write one object a row, with the conversation's fields",
    )


def _describe_parse_error(error: ValueError) -> str:
    """Describe a parser's error and its position; with a line only in texts of several."""
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.removesuffix(" at").removesuffix(" starting")
        line = f"line {error.lineno} " if error.lineno > 1 else ""
        return f"{reason} at {line}column {error.colno}"
    return str(error)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row.

    Attributes:
        source: The file's name, or `-`.
        line: From 1: the line in JSON lines and CSV, where it begins; the item in a JSON list; the
            row in Parquet.
        fields: As the file has them.
        beside: What stands beside the row's list in the envelope of an interface's answer.
    """

    source: str
    line: int
    fields: JsonDict
    beside: JsonObject = field(default_factory=dict)
