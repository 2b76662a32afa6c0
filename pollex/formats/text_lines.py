"""Logs of a program in lines of text: `key=value` pairs, or fields between bars; and texts that are no log."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow
from pollex.text import JsonDict, parse_json

MAX_LINES_EXAMINED = 40
"""Lines by which a text is told."""
MIN_OBJECT_LINE_SHARE = 0.4
"""Share of the lines that end with an object in JSON, in a log of a program that writes other lines, too."""
MIN_MATCHING_LINE_SHARE = 0.8
"""Share of the lines that look so in a log."""
_PAIR_PATTERN = re.compile(r'([A-Za-z_][\w.@-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?:\s+|$)')
_BAR_SEPARATOR = " | "
_ESCAPE_PATTERN = re.compile(r"\\(.)")
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r"}
_SQL_DUMP_PATTERN = re.compile(
    r"(?im)^(?:-- .*\bdump\b|create table |insert into |copy \S+ \(.*from stdin;)"
)
_TABLE_SEPARATORS = (",", ";", "\t")


def detect_line_kind(lines: Iterable[str]) -> str:
    """Return what lines of text are: `pairs`, `bars`, `prefixed`, a `dump` of a database, `table`, or `prose`."""
    begin = []
    for line in islice(lines, MAX_LINES_EXAMINED):
        begin.append(line.rstrip("\r\n"))

    filled = []
    for line in begin:
        if line.strip():
            filled.append(line)

    if _SQL_DUMP_PATTERN.search("\n".join(filled)):
        return "dump"
    # a single line doesn't show a form that comes again
    if len(filled) < 2:
        return "table"
    if (
        _measure_line_share(filled, lambda line: len(_parse_pairs(line)) >= 3)
        >= MIN_MATCHING_LINE_SHARE
    ):
        return "pairs"
    if (
        _measure_line_share(filled, lambda line: line.count(_BAR_SEPARATOR) >= 2)
        >= MIN_MATCHING_LINE_SHARE
    ):
        return "bars"
    if (
        _measure_line_share(filled, lambda line: bool(_parse_trailing_object(line)))
        >= MIN_OBJECT_LINE_SHARE
    ):
        return "prefixed"
    return "table" if _looks_like_table(begin) else "prose"


def _measure_line_share(lines: Sequence[str], looks_so: Callable[[str], bool]) -> float:
    return sum(map(looks_so, lines)) / len(lines)


def _looks_like_table(lines: Sequence[str]) -> bool:
    """Return whether the first line may be a header: as many separators as most of the lines have."""
    text = "\n".join(lines)
    if '"' in lines[0] or text.count('"') >= len(lines):
        return True  # quoted cells may go over several lines

    sign = max(_TABLE_SEPARATORS, key=lines[0].count)
    filled = []
    for line in lines:
        if line.strip():
            filled.append(line)

    number = lines[0].count(sign)
    return (
        number > 0 and _measure_line_share(filled, lambda line: line.count(sign) >= number) >= 0.5
    )


def _parse_pairs(line: str) -> list[tuple[str, str]]:
    """Return the pairs of a line that holds nothing else; none for other lines."""
    pairs = []
    start = 0
    while (pair := _PAIR_PATTERN.match(line, start)) is not None and pair.end() > start:
        quoted = pair[2]
        if quoted is None:
            value = pair[3]
        else:
            value = _ESCAPE_PATTERN.sub(_unescape_match, quoted)

        pairs.append((pair[1], value))
        start = pair.end()

    return pairs if start == len(line) else []


def _unescape_match(pairs: re.Match[str]) -> str:
    return _ESCAPED_CHARACTERS.get(pairs[1], pairs[1])


def iterate_rows_of_key_value_lines(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line of `key=value` pairs; a line that is none is a row of its words."""
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            yield LogRow(source, number, dict(_parse_pairs(text)) or {"line": text})


def iterate_rows_of_lines_ending_in_json(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line that ends with an object in JSON; a line that has none is a row of its words."""
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            fields = _parse_trailing_object(text)
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


def _parse_trailing_object(line: str) -> JsonDict:
    """Return the object in JSON that a line ends with, behind a prefix; empty for other lines."""
    start = line.find("{")
    if start < 1 or not line.rstrip().endswith("}"):
        return {}

    try:
        value = parse_json(line[start:].strip())
    except ValueError:
        return {}

    return value if isinstance(value, dict) else {}


def iterate_rows_of_bar_separated_lines(source: str, lines: Iterator[str]) -> Iterator[LogRow]:
    """Yield one row for each line of fields between bars; bars in the last field belong to it."""
    begin = list(islice(lines, MAX_LINES_EXAMINED))
    # the fewest bars of a line: further ones belong to the last field
    fields = min(line.count(_BAR_SEPARATOR) for line in begin if line.strip())
    for number, line in enumerate(chain(begin, lines), start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        parts = [part.strip() for part in text.split(_BAR_SEPARATOR, fields)]
        fields_by_name = dict(
            _parse_bar_field(place, part) for place, part in enumerate(parts, start=1)
        )
        yield LogRow(source, number, fields_by_name)


def _parse_bar_field(place: int, part: str) -> tuple[str, str]:
    pair = re.fullmatch(r"([A-Za-z_]\w*)[=:](\S+)", part)
    return (pair[1], pair[2]) if pair else (f"field {place}", part)


def refuse_text_file(source: str, kind: str) -> None:
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


LINE_KIND_READERS = {
    "pairs": iterate_rows_of_key_value_lines,
    "bars": iterate_rows_of_bar_separated_lines,
    "prefixed": iterate_rows_of_lines_ending_in_json,
}
"""What reads a log of lines, by their kind."""
