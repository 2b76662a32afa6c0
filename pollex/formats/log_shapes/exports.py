"""The definition of a tool's export format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pollex.errors import BadInput
from pollex.formats.assembly.pieces import Piece
from pollex.formats.log_shapes.payloads import nested, opened

Fields = Mapping[str, Any]


class WrongFile(BadInput):
    """A file that cannot be used; the remedy names what to export instead."""


@dataclass(frozen=True, slots=True)
class Export:
    """One export format, recognized by its keys.

    Attributes:
        name: Display name: the tool and the content of the file.
        signs: Sets of keys, each of which marks the format; a dot leads into an object.
        read: The pieces of a row; raises `BadInput` for one that can't be read.
        names: Further keys that its rows may have, apart by blanks: exports that spell keys otherwise are read by them.
        also: A further condition besides the keys.
        no_words: Whether it is a table beside the conversations, with neither their words nor thumbs.
    """

    name: str
    signs: tuple[tuple[str, ...], ...]
    read: Callable[[Fields], Iterable[Piece]]
    names: str = ""
    also: Callable[[Fields], bool] = field(default=lambda _: True)
    no_words: bool = False

    def recognises(self, fields: Fields) -> bool:
        """Return whether a row has the keys of this format."""
        return any(all(has(fields, key) for key in sign) for sign in self.signs) and self.also(fields)

    def missing(self, fields: Fields) -> tuple[float, list[str]]:
        """Return the share of a format's keys that a row has, and the missing keys."""
        best = max(self.signs, key=lambda sign: sum(has(fields, key) for key in sign) / len(sign))
        lacking = [key for key in best if not has(fields, key)]
        return 1 - len(lacking) / len(best), lacking


def has(fields: Fields, path: str) -> bool:
    """Return whether a row has a key, or the path of keys that it names."""
    if path in fields:
        return True
    if "." not in path:
        return False
    outer, _, inner = path.partition(".")
    value = fields.get(outer)
    return isinstance(value, Mapping) and has(value, inner)


def at(fields: object, path: str) -> Any:
    """Return the value under a path with dots; None if missing."""
    value: Any = fields
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def text(value: object) -> str | None:
    """Convert an id or a name to text; None for nothing, lists and objects."""
    if isinstance(value, Mapping):
        value = value.get("$oid")
    if value is None or isinstance(value, list | dict | bool):
        return None
    return str(value).strip() or None


def required(fields: Fields, name: str, *others: str) -> str:
    """Return the text under the first of some names that has any.

    Raises:
        BadInput: None of them has any.
    """
    for one in (name, *others):
        if found := text(at(fields, one)):
            return found
    raise BadInput(f"{name} is empty", remedy=f"export again with {name}")


def facts(**found: Any) -> dict[str, Any]:
    """Return fields for a conversation's metadata, without the empty ones."""
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, possibly in JSON text; an empty list otherwise."""
    found = opened(value)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def inside(value: object) -> Mapping[str, Any]:
    """Return an object, possibly in JSON text; an empty one otherwise."""
    found = opened(value)
    return found if isinstance(found, Mapping) else {}


def under(fields: Fields, name: str) -> Any:
    """Return the value of a column, or the object in columns whose names begin with it and a dot."""
    if fields.get(name) not in (None, ""):
        return fields[name]
    prefix = f"{name}."
    filled = [(column, value) for column, value in fields.items() if value not in (None, "")]
    return nested({k.removeprefix(prefix): opened(v) for k, v in filled if k.startswith(prefix)}) or None


def truth(value: object) -> bool:
    """Parse a flag as JSON, SQL and CSV write it."""
    return str(value).strip().casefold() in ("true", "1", "1.0", "t", "yes")
