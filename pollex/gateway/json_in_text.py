"""Finds the JSON object that a model was asked for in what it wrote.

Models wrap their answer. What is put up with, and nothing else:

- a byte order mark and white space;
- thoughts before the answer, between the marks of `thoughts`; those that never end hold no answer,
and marks within it
  are words of it;
- prose and code fences around the object;
- several objects: the last complete one counts;
- a comma before a closing brace or bracket;
- line breaks and tabs within strings, as small models write them;
- one more object around it, as some models repeat the schema's own words or name a result;
- a key that is named twice with the same answer; with different ones its value is `CONFLICTING_VALUE`.

Nothing is guessed: an object that is cut short or holds NaN or Infinity is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pollex.gateway.thoughts import find_last_thought_begin, find_thought_ends

JsonPath = tuple[str | int, ...]

_JSON_STRING_REGEX = r'"(?:[^"\\]++|\\.)*+"'
_STRING_OR_TRAILING_COMMA_REGEX = re.compile(_JSON_STRING_REGEX + r"|,(?=\s*[}\]])", re.DOTALL)
_JSON_TOKEN_REGEX = re.compile(_JSON_STRING_REGEX + r'|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OBJECT_LEAD_REGEX = re.compile(r"[\s\ufeff]*(?:```\w*\s*)?(?=\{)")
_MAX_OBJECT_STARTS_TRIED = 2_000


CONFLICTING_VALUE: Final = object()
"""In place of answers to one question that disagree."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A JSON object in a text.

    Attributes:
        value: What it says.
        start: Offset of its opening brace.
        end: Offset behind its closing brace.
    """

    value: dict[str, object]
    start: int
    end: int


def find_last_json_object(text: str) -> JsonBlock | None:
    """Return the last complete JSON object in `text`, out of what is around it; None where there is none."""
    begin = find_answer_start(text)
    if begin is None:
        return None

    # from brace to brace; behind an object the search goes on at its end
    mended = last_block = None
    for _ in range(_MAX_OBJECT_STARTS_TRIED):
        begin = text.find("{", begin)
        if begin < 0:
            break
        block = _decode_json_object(text, begin)
        if block is None:
            if mended is None:
                mended = _blank_stray_commas(text)
            block = _decode_json_object(mended, begin)

        last_block = block or last_block
        begin = block.end if block else begin + 1

    if last_block is None:
        return None
    return _unwrap_object(text if mended is None else mended, last_block)


def find_answer_start(text: str) -> int | None:
    """Return where in `text` an answer may begin; None if thoughts never end.

    An object may contain the marks, too: from a conversation about them, or one that tries to spoil
    the answer. So an object at the beginning, or right after the first thoughts, that extends
    beyond the last mark is the answer.
    """
    closing = find_thought_ends(text)
    last_mark = max(closing[-1][0] if closing else -1, find_last_thought_begin(text))
    if last_mark < 0:
        return 0

    for begin in (0, closing[0][1]) if closing else (0,):
        # an object that spans the last mark holds it: the marks are part of the answer
        lead = _OBJECT_LEAD_REGEX.match(text, begin)
        block = None
        if lead:
            block = _decode_json_object(text, lead.end()) or _decode_json_object(
                _blank_stray_commas(text), lead.end()
            )
        if block is not None and block.end > last_mark:
            return begin

    return closing[-1][1] if closing else None


def locate_json_values(text: str, block: JsonBlock) -> dict[JsonPath, tuple[int, int]]:
    """Map the path of each value in `block` to its place in `text`, without quotes.

    For example `{("answers", 0, "option"): (31, 36)}`.
    """
    spans: dict[JsonPath, tuple[int, int]] = {}
    path: list[str | int | None] = []  # None: in an object, before a key
    for match in _JSON_TOKEN_REGEX.finditer(text, block.start, block.end):
        mark = match.group()
        if mark in "{[":
            path.append(None if mark == "{" else 0)
        elif mark in "}]":
            path.pop()
        elif mark == ",":
            at = path[-1]
            path[-1] = at + 1 if isinstance(at, int) else None
        elif mark != ":" and path[-1] is None:
            path[-1] = json.loads(mark)
        elif mark != ":":
            quote = int(mark.startswith('"'))
            spans[tuple(at for at in path if at is not None)] = (
                match.start() + quote,
                match.end() - quote,
            )

    return spans


_WRAPPER_NAMES = {"properties", "result", "response", "output", "data", "json", "arguments"}
"""Keys of an object that holds nothing but the one that was asked for."""
_SCHEMA_WORDS = {"type", "title", "required", "additionalProperties", "$schema", "description"}
"""What may stand beside `properties` where a model repeats the schema."""


def _unwrap_object(text: str, block: JsonBlock) -> JsonBlock:
    """Return the object inside one that says nothing else."""
    names = (
        block.value.keys() - _SCHEMA_WORDS if "properties" in block.value else block.value.keys()
    )
    name = next(iter(names), "")
    inside = block.value.get(name)
    if len(names) != 1 or name not in _WRAPPER_NAMES or not isinstance(inside, dict):
        return block

    key = re.search(rf'"{name}"\s*:\s*(?=\{{)', text[block.start : block.end])
    inner = None if key is None else _decode_json_object(text, block.start + key.end())
    if inner is None or inner.value != inside:
        return block
    return _unwrap_object(text, inner)


def _decode_json_object(text: str, begin: int) -> JsonBlock | None:
    try:
        value, end = _JSON_DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None

    return JsonBlock(value, begin, end)


def _blank_stray_commas(text: str) -> str:
    """Replace the commas that JSON doesn't allow by spaces, so that offsets stay the same."""
    return _STRING_OR_TRAILING_COMMA_REGEX.sub(
        lambda match: " " if match.group() == "," else match.group(),
        text,
    )


def _merge_object_pairs(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for key, value in pairs:
        merged[key] = (
            value
            if key not in merged or _are_compatible_values(merged[key], value)
            else CONFLICTING_VALUE
        )
    return merged


def _are_compatible_values(first: object, second: object) -> bool:
    if isinstance(first, dict) and isinstance(second, dict) and "answer" in first:
        return bool(first["answer"] == second.get("answer"))
    return bool(first == second)


def _refuse_json_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_JSON_DECODER = json.JSONDecoder(
    object_pairs_hook=_merge_object_pairs,
    parse_constant=_refuse_json_constant,
    strict=False,  # a line may break within a string
)
