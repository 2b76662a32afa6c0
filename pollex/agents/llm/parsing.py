"""Parsing of what a model wrote into checked values."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pollex.gateway.json_in_text import Block, behind_thoughts, last_object

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class Conflict:
    """Marker for answers to one question that disagree."""


CONFLICT: Final = Conflict()


def object_in(text: str) -> Block | None:
    """Parse the last complete JSON object in `text`, with texts that can be stored.

    An object that names a key twice is read here as well: answers that agree are one, others are a `CONFLICT`.
    """
    answer = behind_thoughts(text)
    if answer is None:
        return None
    block, begin = last_object(text), text.find("{", answer)
    if block is None or begin < block.start:
        block = _around(block, text, begin) or block
    return _storable_block(block) if block and _SURROGATE.search(text) else block


def chosen(answer: Any, options: Sequence[str]) -> int | None:
    """Return the index of the option that `answer` names, after NFKC and trimming."""
    if not isinstance(answer, str):
        return None
    return _places(tuple(options)).get(as_read(answer))


@lru_cache(maxsize=256)
def _places(options: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each option by its spelling as it is compared; of equal ones the first."""
    return {as_read(option): place for place, option in reversed(list(enumerate(options)))}


def as_read(option: str) -> str:
    """Normalize an option's spelling for comparison."""
    return unicodedata.normalize("NFKC", option).strip()


def numbers(value: Any) -> list[int]:
    """Return the whole numbers in a list; empty for any other value."""
    return [item for item in value if type(item) is int] if isinstance(value, list) else []


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; empty for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _around(block: Block | None, text: str, begin: int) -> Block | None:
    """Parse the object at `begin` with duplicate keys, if `block` is part of it."""
    try:
        value, end = _DECODER.raw_decode(text, begin) if begin >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return None
    return Block(value, begin, end) if isinstance(value, dict) and (block is None or block.end <= end) else None


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key, value in pairs:
        merged[key] = value if key not in merged or _agree(merged[key], value) else CONFLICT
    return merged


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict) and "answer" in one:
        return bool(one["answer"] == other.get("answer"))
    return bool(one == other)


def _storable_block(block: Block) -> Block | None:
    try:
        return Block(_storable(block.value), block.start, block.end)
    except RecursionError:
        return None


def _storable(value: Any) -> Any:
    """Replace lone surrogates, which no store accepts, by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_merged)
