"""Finds the JSON object that a model was asked for in what it wrote.

Models wrap their answer. What is put up with, and nothing else:

- a byte order mark and white space;
- `<think>…</think>` before the answer; thoughts that never end hold no answer, and tags within it are words of it;
- prose and code fences around the object;
- several objects: the last complete one counts;
- a comma before a closing brace or bracket;
- a key that is named twice with the same answer; with different ones its value is `CONFLICT`.

Nothing is guessed: an object that is cut short or holds NaN or Infinity is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

JsonPath = tuple[str | int, ...]

_THOUGHTS_END = "</think>"
_THOUGHTS_BEGIN = "<think>"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_MARK = re.compile(_STRING + r'|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_LEAD = re.compile(r"[\s\ufeff]*(?:```\w*\s*)?(?=\{)")
_MOST_STARTS = 2_000


class Conflict:
    """Marker for answers to one question that disagree."""


CONFLICT: Final = Conflict()


@dataclass(frozen=True, slots=True)
class Block:
    """A JSON object in a text.

    Attributes:
        value: What it says.
        start: Offset of its opening brace.
        end: Offset behind its closing brace.
    """

    value: dict[str, Any]
    start: int
    end: int


def last_object(text: str) -> Block | None:
    """Return the last complete JSON object in `text`; None where there is none."""
    begin = behind_thoughts(text)
    if begin is None:
        return None
    mended = found = None
    for _ in range(_MOST_STARTS):
        begin = text.find("{", begin)
        if begin < 0:
            break
        block = _decode(text, begin)
        if block is None:
            mended = _mended(text) if mended is None else mended
            block = _decode(mended, begin)
        found = block or found
        begin = block.end if block else begin + 1
    return found


def behind_thoughts(text: str) -> int | None:
    """Return where in `text` an answer may begin; None if thoughts never end.

    An object may contain the tags, too: from a conversation about them, or one that tries to spoil the answer. So an
    object at the beginning, or right after the first thoughts, that extends beyond the last tag is the answer.
    """
    first, last = text.find(_THOUGHTS_END), text.rfind(_THOUGHTS_END)
    last_tag = max(last, text.rfind(_THOUGHTS_BEGIN))
    if last_tag < 0:
        return 0
    for begin in (0, first + len(_THOUGHTS_END)) if first >= 0 else (0,):
        if _end_of_object(text, begin) > last_tag:
            return begin
    return last + len(_THOUGHTS_END) if last >= 0 else None


def _end_of_object(text: str, begin: int) -> int:
    """Return the end of the object at `begin`, after white space; -1 without one."""
    lead = _LEAD.match(text, begin)
    block = (_decode(text, lead.end()) or _decode(_mended(text), lead.end())) if lead else None
    return block.end if block else -1


def value_spans(text: str, block: Block) -> dict[JsonPath, tuple[int, int]]:
    """Map the path of each value in `block` to its place in `text`, without quotes.

    For example `{("answers", 0, "option"): (31, 36)}`.
    """
    spans: dict[JsonPath, tuple[int, int]] = {}
    frames: list[_Frame] = []
    for match in _MARK.finditer(text, block.start, block.end):
        mark = match.group()
        if mark in "{[":
            frames.append(_Frame(mark == "{"))
        elif mark in "}]":
            frames.pop()
        elif mark == ",":
            frames[-1].next()
        elif mark != ":":
            _note(spans, frames, match)
    return spans


class _Frame:
    def __init__(self, is_object: bool) -> None:
        self.at: str | int | None = None if is_object else 0

    def next(self) -> None:
        self.at = self.at + 1 if isinstance(self.at, int) else None


def _note(spans: dict[JsonPath, tuple[int, int]], frames: Sequence[_Frame], match: re.Match[str]) -> None:
    token = match.group()
    if frames[-1].at is None:
        frames[-1].at = json.loads(token)
        return
    quote = int(token.startswith('"'))
    path = tuple(frame.at for frame in frames if frame.at is not None)
    spans[path] = (match.start() + quote, match.end() - quote)


def _decode(text: str, begin: int) -> Block | None:
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    return Block(value, begin, end)


def _mended(text: str) -> str:
    """Blank out the commas that JSON doesn't allow."""
    return _TRAILING_COMMA.sub(_blank_comma, text)


def _blank_comma(match: re.Match[str]) -> str:
    """Replace a trailing comma by a space, so that offsets stay the same."""
    return " " if match.group() == "," else match.group()


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key, value in pairs:
        merged[key] = value if key not in merged or _agree(merged[key], value) else CONFLICT
    return merged


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict) and "answer" in one:
        return bool(one["answer"] == other.get("answer"))
    return bool(one == other)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_merged, parse_constant=_refuse)
