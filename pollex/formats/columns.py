"""The columns of a few rows, those inside objects, lists and JSON text, too, with their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pollex.errors import BadInput
from pollex.formats.assembly.log_parts import iterate_plausible_times, parse_timestamp
from pollex.formats.labels import MISSING_LABEL_SPELLINGS
from pollex.formats.log_shapes.turns import ROLE_FIELD_NAMES, TEXT_FIELD_NAMES, extract_text
from pollex.formats.names import is_named_as_part
from pollex.formats.paths import (
    convert_turns_to_objects,
    parse_value_if_json_text,
    unwrap_message_content,
)
from pollex.text import JsonObject

MAX_NESTING_DEPTH = 5
"""How deep objects stand in each other that are looked into."""
MAX_COLUMNS = 200
CONTENT_PART_KEYS = frozenset(("type", "text", "content", "kind"))
"""Keys of the parts of a message's content."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column.

    Attributes:
        path: Its name, or the path to it.
        values: In the order of the rows; None where a row has none.
    """

    path: str
    values: Sequence[Any] = field(repr=False)

    @cached_property
    def texts(self) -> list[str]:
        """The values that are texts, or parts of a message whose texts they are."""
        words = (
            value if isinstance(value, str) else extract_content_text(value)
            for value in self.values
        )
        return [text for text in words if text.strip()]

    @cached_property
    def filled(self) -> int:
        """How many rows have a value."""
        return sum(value not in (None, "", [], {}) for value in self.values)

    @property
    def sparse(self) -> bool:
        """Whether many rows have none."""
        return self.filled < 0.9 * len(self.values)

    @cached_property
    def unique(self) -> bool:
        """Whether each row has a value of its own."""
        texts = []
        for value in self.values:
            if not isinstance(value, list | dict | bool | float):
                texts.append(str(value))

        return len(texts) == len(self.values) == len({*texts}) == self.filled

    @cached_property
    def words(self) -> list[str]:
        """The different values that are no missing labels, as text; those of lists one by one."""
        words: dict[str, None] = {}
        for value in self.values:
            for item in value if isinstance(value, list) else [value]:
                # false and 0 are values, other empty ones are none
                if not isinstance(item, list | dict) and str(
                    item or "" if item is not False and item != 0 else item
                ):
                    words.setdefault(str(item).lower() if isinstance(item, bool) else str(item))

        return [word for word in words if word.strip().casefold() not in MISSING_LABEL_SPELLINGS]

    @property
    def example(self) -> object:
        """The first value that is one."""
        return next((value for value in self.values if value not in (None, "")), None)

    @cached_property
    def times(self) -> float:
        """The share of values that are times."""
        # a column of times has one in nearly each row
        filled_values = []
        for value in self.values:
            if value not in (None, ""):
                filled_values.append(value)

        # a phone number isn't one
        if any(isinstance(value, str) and value.startswith("+") for value in filled_values):
            return 0.0
        if not filled_values or len(filled_values) < 0.9 * len(self.values):
            return 0.0
        return sum(
            any(
                iterate_plausible_times(
                    (parse_timestamp(value, True), parse_timestamp(value, False))
                )
            )
            for value in filled_values
        ) / len(filled_values)


@dataclass(frozen=True, eq=False)
class ListOfTurns:
    """A list of objects in each row.

    Attributes:
        starts: Where the items of each row begin among all.
    """

    path: str
    columns: Sequence[Column] = field(repr=False)
    starts: Sequence[int] = field(repr=False)

    @property
    def likelihood(self) -> float:
        """How far its name speaks for turns."""
        return float(is_named_as_part(self.path, "messages"))

    @property
    def owner(self) -> Column:
        """Which row each item is in, as a column."""
        items = len(self.columns[0].values) if self.columns else 0
        ends = [*self.starts[1:], items]
        numbers: list[int] = []
        for number, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            numbers += [number] * (end - start)

        return Column("", numbers)


def list_columns(rows: Sequence[JsonObject]) -> list[Column]:
    """Return all columns of rows; those of lists' items have `[]` in their paths and lists as values."""
    by_path: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        for path, value in _iterate_leaves(row):
            values = by_path.get(path)
            if values is None:
                if len(by_path) >= MAX_COLUMNS:
                    continue
                values = by_path[path] = [None] * len(rows)

            # of several values at one path, the first that is there counts
            if "[]" not in path:
                values[number] = value if values[number] is None else values[number]
            elif value is not None:
                values[number] = [*(values[number] or []), value]

    return [Column(path, values) for path, values in by_path.items()]


def _iterate_leaves(
    value: JsonObject,
    before: str = "",
    depth: int = 0,
) -> Iterator[tuple[str, object]]:
    for name, field_value in value.items():
        path = f"{before}{name}"
        inner = parse_value_if_json_text(field_value)
        if isinstance(inner, Mapping) and inner and depth < MAX_NESTING_DEPTH:
            # an object around a message's content counts whole, too
            if inner.keys() & {"parts", "content", "message"}:
                yield path, inner
            yield from _iterate_leaves(inner, f"{path}.", depth + 1)
        elif _is_list_of_objects(inner) and depth < MAX_NESTING_DEPTH:
            # parts of a message count whole, and by their fields
            if any(
                part.keys() & CONTENT_PART_KEYS and part.keys().isdisjoint(ROLE_FIELD_NAMES)
                for part in inner
            ):
                yield path, inner

            for item in inner:
                yield from _iterate_leaves(item, f"{path}[].", depth + 1)
        else:
            yield path, field_value if inner is field_value or isinstance(inner, str) else inner


def extract_content_text(value: object) -> str:
    """Return the text of a message's content in parts; empty for what is none."""
    try:
        if isinstance(value, list | Mapping):
            return extract_text(unwrap_message_content(value))
        return ""
    except BadInput:
        return ""


def find_lists_of_turns(rows: Sequence[JsonObject]) -> list[ListOfTurns]:
    """Return the lists of objects that most rows have, with several items in some."""
    by_path: dict[str, list[list[object]]] = {}
    for row in rows:
        for path, listed in _iterate_object_lists(row):
            by_path.setdefault(path, []).append(listed)

    frequent = {}
    for path, lists in by_path.items():
        if len(lists) >= 0.5 * len(rows) and any(len(listed) > 1 for listed in lists):
            frequent[path] = lists

    return [_build_list_of_turns(path, lists) for path, lists in frequent.items()]


def _iterate_object_lists(
    value: JsonObject,
    before: str = "",
    depth: int = 0,
) -> Iterator[tuple[str, list[object]]]:
    for name, field_value in value.items():
        path = f"{before}{name}"
        # turns may be pairs, or objects of a single key
        inner = convert_turns_to_objects(parse_value_if_json_text(field_value))
        if isinstance(inner, Mapping) and depth < MAX_NESTING_DEPTH:
            # an object of objects may be turns by their keys
            values = list(inner.values())
            if _is_list_of_objects(values) and len(values) > 1:
                yield path, values
            yield from _iterate_object_lists(inner, f"{path}.", depth + 1)
        elif _is_list_of_objects(inner):
            yield path, inner
            yield from _iterate_item_lists(inner, path, depth)


def _iterate_item_lists(
    items: Sequence[JsonObject],
    path: str,
    depth: int,
) -> Iterator[tuple[str, list[object]]]:
    """Yield the lists that stand in all items of a list, joined."""
    if depth < MAX_NESTING_DEPTH:
        joined: dict[str, list[object]] = {}
        for item in items:
            for name, listed in _iterate_object_lists(item, f"{path}[].", depth + 1):
                joined.setdefault(name, []).extend(listed)
        yield from joined.items()


def _build_list_of_turns(path: str, lists: Sequence[list[Any]]) -> ListOfTurns:
    items = list[Any]()
    starts = list[int]()
    # the items of all rows follow each other, with the place where each row's begin
    for listed in lists:
        starts.append(len(items))
        # calls of tools that a program noted are no turns of anybody
        items += [item for item in listed if not _is_tool_step(item)]

    return ListOfTurns(path, list_columns(items), starts)


def _is_tool_step(item: JsonObject) -> bool:
    """Return whether an item of a list is a call of a tool, in which nobody says anything."""
    if any(item.get(name) for name in TEXT_FIELD_NAMES):
        return False

    from pollex.formats.log_shapes.dialects import (
        convert_tool_step,
    )  # few lists have items without words

    return convert_tool_step(item) is not None


def _is_list_of_objects(value: object) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )
