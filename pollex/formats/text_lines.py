"""Logs of a program in lines of text: `key=value` pairs, or fields between bars; and texts that are no log."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow
from pollex.text import parse_json

LOOKED_AT = 40
"""Lines by which a text is told."""
LEAST_OBJECTS = 0.4
"""Share of the lines that end with an object in JSON, in a log of a program that writes other lines, too."""
MOST = 0.8
"""Share of the lines that look so in a log."""
_PAIR = re.compile(r'([A-Za-z_][\w.@-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?:\s+|$)')
_BAR = " | "
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_DUMP = re.compile(r"(?im)^(?:-- .*\bdump\b|create table |insert into |copy \S+ \(.*from stdin;)")
_SEPARATORS = (",", ";", "\t")


def kind_of_lines(lines: Iterable[str]) -> str:
    """Return what lines of text are: `pairs`, `bars`, `prefixed`, a `dump` of a database, `table`, or `prose`."""
    begin = []
    for line in islice(lines, LOOKED_AT):
        begin.append(line.rstrip("\r\n"))

    filled = []
    for line in begin:
        if line.strip():
            filled.append(line)

    if _DUMP.search("\n".join(filled)):
        return "dump"
    # a single line doesn't show a form that comes again
    if len(filled) < 2:
        return "table"
    if _share_of_lines(filled, lambda line: len(_pairs_in(line)) >= 3) >= MOST:
        return "pairs"
    if _share_of_lines(filled, lambda line: line.count(_BAR) >= 2) >= MOST:
        return "bars"
    if _share_of_lines(filled, lambda line: bool(_object_in(line))) >= LEAST_OBJECTS:
        return "prefixed"
    return "table" if _may_be_table(begin) else "prose"


def _share_of_lines(lines: Sequence[str], looks_so: Callable[[str], bool]) -> float:
    return sum(map(looks_so, lines)) / len(lines)


def _may_be_table(lines: Sequence[str]) -> bool:
    """Return whether the first line may be a header: as many separators as most of the lines have."""
    text = "\n".join(lines)
    if '"' in lines[0] or text.count('"') >= len(lines):
        return True  # quoted cells may go over several lines

    sign = max(_SEPARATORS, key=lines[0].count)
    filled = []
    for line in lines:
        if line.strip():
            filled.append(line)

    number = lines[0].count(sign)
    return number > 0 and _share_of_lines(filled, lambda line: line.count(sign) >= number) >= 0.5


def _pairs_in(line: str) -> list[tuple[str, str]]:
    """Return the pairs of a line that holds nothing else; none for other lines."""
    pairs = []
    start = 0
    while (pair := _PAIR.match(line, start)) is not None and pair.end() > start:
        quoted = pair[2]
        if quoted is None:
            value = pair[3]
        else:
            value = _ESCAPED.sub(_unescaped, quoted)

        pairs.append((pair[1], value))
        start = pair.end()

    return pairs if start == len(line) else []


def _unescaped(pairs: re.Match[str]) -> str:
    return _ESCAPES.get(pairs[1], pairs[1])


def rows_of_pairs(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line of `key=value` pairs; a line that is none is a row of its words."""
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            yield LogRow(source, number, dict(_pairs_in(text)) or {"line": text})


def rows_of_prefixed(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line that ends with an object in JSON; a line that has none is a row of its words."""
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            fields = _object_in(text)
            before = ""
            if fields:
                before = text[: text.index("{")].strip()
            if before and "prefix" not in fields:
                prefix = {"prefix": before}
            else:
                prefix = {}

            yield LogRow(
                source,
                number,
                {**prefix, **fields} if fields else {"line": text},
            )


def _object_in(line: str) -> dict[str, Any]:
    """Return the object in JSON that a line ends with, behind a prefix; empty for other lines."""
    start = line.find("{")
    if start < 1 or not line.rstrip().endswith("}"):
        return {}

    try:
        value = parse_json(line[start:].strip())
    except ValueError:
        return {}

    return value if isinstance(value, dict) else {}


def rows_of_bars(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line of fields between bars; bars in the last field belong to it."""
    begin = list(islice(lines, LOOKED_AT))
    # the fewest bars of a line: further ones belong to the last field
    fields = min(line.count(_BAR) for line in begin if line.strip())
    for number, line in enumerate(chain(begin, lines), start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        parts = [part.strip() for part in text.split(_BAR, fields)]
        fields_by_name = dict(_name_field(place, part) for place, part in enumerate(parts, start=1))
        yield LogRow(source, number, fields_by_name)


def _name_field(place: int, part: str) -> tuple[str, str]:
    pair = re.fullmatch(r"([A-Za-z_]\w*)[=:](\S+)", part)
    return (pair[1], pair[2]) if pair else (f"field {place}", part)


def refuse_text(source: str, kind: str) -> None:
    """Refuse a text that is no log.

    Raises:
        BadInput: It is a dump of a database, or has lines of which nobody knows who speaks.
    """
    if kind == "dump":
        raise BadInput(
            "a dump of a database, and no log",
            where=source,
            hint="restore it and query it, or export the table of messages, joined with its labels, as CSV",
        )

    if kind == "prose":
        hint = (
            "write a turn a line, as `NAME: words`, with a line of dashes between conversations; "
            "or a table with the columns conversation, role, text and label"
        )
        raise BadInput(
            "a text of which no line says in a known way who speaks, and no table",
            where=source,
            hint=hint,
        )
