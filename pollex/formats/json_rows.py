"""JSON and JSON lines, read strictly.

DuckDB's reader gives up a whole file for one bad line, takes an id like `2024-01-01` for a date and mixes the types of
1 and "1"; Python's keeps the last of two equal keys. Here every line stands for itself, values stay what they are, and
a line with two equal keys or nested deeper than `MAX_DEPTH` is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.text import parse_json

ENVELOPES = (
    *("conversations", "data", "runs", "rows", "items", "traces", "samples", "feedback_data", "examples", "content"),
    *("tickets", "threads"),
)
"""Names of lists whose items are rows."""
PAGE_NAMES = frozenset(
    (
        "object",
        "has_more",
        "first_id",
        "last_id",
        "meta",
        "next_cursor",
        "next_page_token",
        "limit",
        "page",
        "size",
        "total",
        "next",
        "count",
        "type",
        "sortableBy",
        "export_info",
        "pages",
        "total_count",
    )
)
"""What stands beside the list in an answer of an interface."""
ITEM_TYPES = frozenset(("function_call", "function_call_output", "reasoning", "web_search_call", "file_search_call"))
"""Items beside messages in a conversation of OpenAI's Responses."""


def json_lines(source: str, lines: Iterable[str]) -> Iterator[Row | BadRow]:
    """Yield one row for each line; unreadable lines become bad rows, blank ones are skipped."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line.rstrip())
        except ValueError as error:
            yield BadRow(source, number, f"not a JSON line: {_reason(error)}", "correct or remove the line")
            continue
        items, beside = items_of(value) if is_page(value) else ([value], {})
        for item in items:
            yield _row(source, number, item, beside)


def json_document(source: str, text: str) -> Iterator[Row | BadRow]:
    """Yield the items of a JSON list, possibly in an envelope such as `{"data": […]}`.

    A single object is one row.

    Raises:
        BadInput: The text isn't JSON; no part of it can be trusted then.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        raise BadInput(
            f"not JSON: {_reason(error)}", where=source, remedy="correct the file, or use JSON lines"
        ) from None
    items, beside = items_of(value)
    for number, item in enumerate(items, start=1):
        yield _row(source, number, item, beside)


def items_of(value: object) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the rows in a JSON value, and the other fields of their envelope.

    A list of messages is one conversation, also in the envelope of an API response.
    """
    if isinstance(value, list):
        return ([{"messages": value}] if _are_messages(value) else value), {}
    if isinstance(value, dict):
        inner = value["data"] if isinstance(value.get("data"), dict) and "examples" in value["data"] else value
        lists = [name for name in ENVELOPES if isinstance(inner.get(name), list) and "role" not in inner]
        # A single ShareGPT conversation has a list named like an envelope; its items are turns.
        if len(lists) == 1 and not any(_is_turn(item) for item in inner[lists[0]]):
            items = inner[lists[0]]
            beside = {name: inner for name, inner in value.items() if name != lists[0]}
            return ([{**beside, "messages": items}] if _are_messages(items) else items), beside
    return [value], {}


def is_page(value: object) -> bool:
    """Return whether a line of JSON is nothing but a page of an API response."""
    if not isinstance(value, dict) or len(value) < 2:
        return False
    lists = [name for name in ENVELOPES if isinstance(value.get(name), list)]
    return len(lists) == 1 and value.keys() - {lists[0]} <= PAGE_NAMES


def _are_messages(items: list[Any]) -> bool:
    """Return whether items are messages of one conversation, with roles and distinct ids."""
    if not items or not all(isinstance(item, dict) and _is_message(item) for item in items):
        return False
    ids = [str(item["id"]) for item in items if item.get("id") is not None]
    spoken = [item for item in items if "role" in item]
    return bool(spoken) and len(set(ids)) == len(ids)


def _is_message(item: dict[str, Any]) -> bool:
    owned = {"conversation_id", "conversationId", "session_id", "sessionId", "thread_id", "chatId", "chat_id"}
    if item.keys() & owned:
        return False
    return {"role", "content"} <= item.keys() or {"role", "parts"} <= item.keys() or str(item.get("type")) in ITEM_TYPES


def _is_turn(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= {"from", "value"}


def _row(source: str, number: int, value: object, beside: Mapping[str, Any]) -> Row | BadRow:
    if isinstance(value, dict):
        return Row(source, number, value, beside)
    return BadRow(source, number, "not a JSON object", "write one object a row, with the conversation's fields")


def _reason(error: ValueError) -> str:
    """Describe a parser's error and its position; with a line only in texts of several."""
    if isinstance(error, json.JSONDecodeError):
        said = error.msg.removesuffix(" at").removesuffix(" starting")
        line = f"line {error.lineno} " if error.lineno > 1 else ""
        return f"{said} at {line}column {error.colno}"
    return str(error)


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        source: The file's name, or `-`.
        line: From 1: the line in JSON lines and CSV, where it begins; the item in a JSON list; the row in Parquet.
        fields: As the file has them.
        beside: What stands beside the row's list in the envelope of an interface's answer.
    """

    source: str
    line: int
    fields: dict[str, Any]
    beside: Mapping[str, Any] = field(default_factory=dict)
