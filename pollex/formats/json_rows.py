"""JSON and JSON lines, read strictly.

DuckDB's reader gives up a whole file for one bad line, takes an id like `2024-01-01` for a date and mixes the types of
1 and "1"; Python's keeps the last of two equal keys. Here every line stands for itself, values stay what they are, and
a line with two equal keys or nested deeper than `MAX_DEPTH` is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.text import parse_json

ENVELOPES = (
    *("conversations", "data", "runs", "rows", "items", "traces", "samples", "feedback_data", "examples", "content"),
    *("spans", "tickets"),
)


def json_lines(source: str, lines: Iterable[str]) -> Iterator[Row | BadRow]:
    """One row a line; a line that can't be read is kept as such, blank lines are nothing."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line.rstrip())
        except ValueError as error:
            yield BadRow(source, number, f"not a JSON line: {_reason(error)}", "mend or remove the line")
            continue
        yield _row(source, number, value)


def json_document(source: str, text: str) -> Iterator[Row | BadRow]:
    """The items of a JSON list, or of the list in an envelope such as `{"data": […]}`; one object is one row.

    Raises:
        BadInput: The text isn't JSON; no part of it can be trusted then.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        raise BadInput(f"not JSON: {_reason(error)}", where=source, remedy="mend the file, or use JSON lines") from None
    for number, item in enumerate(_items(value), start=1):
        yield _row(source, number, item)


def _items(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists = [name for name in ENVELOPES if isinstance(value.get(name), list)]
        # A single ShareGPT conversation has a list named like an envelope; its items are turns.
        if len(lists) == 1 and not any(_is_turn(item) for item in value[lists[0]]):
            items: list[Any] = value[lists[0]]
            return items
    return [value]


def _is_turn(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= {"from", "value"}


def _row(source: str, number: int, value: object) -> Row | BadRow:
    if isinstance(value, dict):
        return Row(source, number, value)
    return BadRow(source, number, "not a JSON object", "write one object a row, with the conversation's fields")


def _reason(error: ValueError) -> str:
    """What the parser says, and where; the line within the text only where the text has several."""
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
    """

    source: str
    line: int
    fields: dict[str, Any]
