"""Transcripts in a text: a line a turn, with the speaker's name before a colon."""

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from pollex.formats.log_shapes.turns import ROLES

_TIME = r"[\[(]?\d{1,4}[\d/.:,\-T\sZ+]*(?:\s?[ap]\.?m\.?)?(?:\s?(?:Uhr|UTC|GMT))?[\])]?"
"""A date, a time or both before a name, possibly in brackets."""
_LINE = re.compile(
    rf"\W{{0,3}}(?:{_TIME}\s*[-–—|:]?\s*)?[*_<\[(]{{0,3}}(?P<name>[^\W\d_][\w .'’&/-]{{0,39}}?)"
    rf"\s?(?:\(?{_TIME}\)?)?[*_>\])]{{0,3}}\s?[:：][*_]{{0,2}}(?:\s+|$)(?P<words>.*)",
    re.IGNORECASE,
)
MOST_WORDS = 4
"""Words of the longest name."""


class Line(NamedTuple):
    """A line that begins a turn, if its name is one."""

    name: str
    words: str


def lines_of(text: str) -> list[Line | str]:
    """Return the lines of a text, those with a name before a colon in two parts."""
    found: list[Line | str] = []
    for line in text.splitlines():
        told = _LINE.match(line)
        name = told["name"].strip() if told else ""
        short = 0 < len(name.split()) <= MOST_WORDS
        found.append(Line(name, told["words"]) if told and short else line)
    return found


def said_by_name(text: str, roles: Collection[str] = ()) -> list[dict[str, str]]:
    """Return the turns of a transcript as messages, of which the role is the speaker's name.

    A name speaks if a role is spelled so, if the user named it, or if it stands before several lines;
    other lines go on with the turn before them.

    Args:
        roles: Names that the user gave, in lower case.
    """
    lines = lines_of(text)
    names = Counter(line.name.casefold() for line in lines if isinstance(line, Line))
    speaking = {name for name, times in names.items() if times > 1 or name in ROLES or name in roles}
    turns: list[dict[str, str]] = []
    for line in lines:
        if isinstance(line, Line) and line.name.casefold() in speaking:
            turns.append({"role": line.name, "content": line.words})
        elif turns:
            more = line if isinstance(line, str) else f"{line.name}: {line.words}"
            turns[-1]["content"] += f"\n{more}"
    return [{**turn, "content": turn["content"].strip()} for turn in turns]


def is_transcript(value: object) -> bool:
    """Return whether a text is one: it has two turns or more, of two speakers at least."""
    if not isinstance(value, str) or ":" not in value.replace("：", ":") or "\n" not in value.strip():
        return False
    return len({turn["role"].casefold() for turn in said_by_name(value)}) > 1
