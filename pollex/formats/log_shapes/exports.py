"""What the readers of exports share: keys, texts, objects and facts of a row."""

from collections.abc import Mapping
from typing import Any

from pollex.errors import BadInput
from pollex.formats.log_shapes.payloads import WrittenForm, nest_dotted_names, parse_nested_json
from pollex.text import JsonDict, JsonObject

Fields = JsonObject


class WrongExportFile(BadInput):
    """A file that cannot be used; the remedy names what to export instead."""


def has_path(fields: Any, path: str) -> bool:
    """Return whether a row has a key, or the path of keys that it names; `*` is the first key or item."""
    # each row is asked for many paths: a loop is twice as fast as a call for each step
    value = fields
    while True:
        is_object = isinstance(value, dict)
        if is_object and path in value:
            return True

        outer, dot, path = path.partition(".")
        if outer == "*":
            if not (is_object or isinstance(value, list)) or not value:
                return False
            value = next(iter(value.values() if is_object else value))
            if not dot:
                return True
        elif not dot or not is_object or (value := value.get(outer)) is None:
            return False


def get_at_path(fields: object, path: str) -> Any:
    """Return the value under a path with dots; None if missing."""
    value: object = fields
    for part in path.split("."):
        value = unwrap_object(value).get(part)
    return value


def format_id(value: object) -> str | None:
    """Convert an id or a name to text; None for nothing, lists and objects."""
    # MongoDB writes an id as an object
    if isinstance(value, Mapping):
        value = value.get("$oid")
    if value is None or isinstance(value, list | dict | bool):
        return None
    # a column with empty cells has 42 as 42.0
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value).strip() or None


def require_text(fields: Fields, name: str, *others: str) -> str:
    """Return the text under the first of some names that has any.

    Raises:
        BadInput: None of them has any.
    """
    for path in (name, *others):
        if value := format_id(get_at_path(fields, path)):
            return value

    raise BadInput(f"{name} is empty", hint=f"export again with {name}")


def keep_filled_facts(**values: object) -> JsonDict:
    """Return fields for a conversation's metadata, without the empty ones."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def list_objects(value: object) -> list[JsonObject]:
    """Return the objects of a list, possibly in JSON text; an empty list otherwise."""
    parsed = parse_nested_json(value)
    if isinstance(parsed, list):
        return [entry for entry in parsed if isinstance(entry, dict)]
    return []


def unwrap_object(value: object) -> JsonObject:
    """Return an object, possibly in JSON text; an empty one otherwise."""
    parsed = parse_nested_json(value)
    return parsed if isinstance(parsed, dict) else {}


def get_column_value(fields: Fields, name: str) -> object:
    """Return the value of a column, or the object in columns whose names begin with it and a dot."""
    if fields.get(name) not in (None, ""):
        return fields[name]

    # columns such as `input.messages` and `input.model` are one object
    prefix = f"{name}."
    filled = []
    for column, value in fields.items():
        if value not in (None, ""):
            filled.append((column, value))

    fields_under = {}
    for k, v in filled:
        if k.startswith(prefix):
            fields_under[k.removeprefix(prefix)] = v
    return nest_dotted_names(fields_under) or None


def detect_written_form(fields: Fields) -> WrittenForm:
    """Return what texts of a row are: what was said if other values are objects or lists, so that no text is one."""
    native = any(isinstance(value, Mapping | list) for value in fields.values())
    return "words" if native else "either"


def parse_flag(value: object) -> bool:
    """Parse a flag as JSON, SQL and CSV write it."""
    return str(value).strip().casefold() in ("true", "1", "1.0", "t", "yes")
