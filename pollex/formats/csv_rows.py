"""CSV, read strictly after RFC 4180.

DuckDB's reader takes a ragged file for one of a single column and splits rows wrongly after a stray
quote, silently; Python's `csv` accepts stray quotes. Here a row with too many or too few cells is
kept as a bad one, and a stray quote refuses the file, since nobody knows where the rows after it
begin. Cells are text, always.
"""

import re
from collections.abc import Iterable, Iterator
from sys import getsizeof
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow

_SEPARATOR = re.compile(r"(?i)\"?sep=([,;\t|])\"?")
DELIMITERS = (",", ";", "\t")
RECORD = 128 << 20
"""Bytes of memory that the text of a record takes at most."""


def csv_rows(source: str, lines: Iterable[str]) -> Iterator[LogRow | BadRow]:
    """Yield one row for each record; the first record is the header.

    Args:
        lines: With their line ends, which may stand inside quotes; a long line may come in parts.

    Raises:
        BadInput: A bad header, or a quote that RFC 4180 has no meaning for.
    """
    records = _records(source, lines)
    first = next(records, None)
    if first is None:
        return
    _, text = first
    told = _SEPARATOR.fullmatch(text)
    if told:  # Excel's own line before the header
        _, text = next(records, (0, ""))
    delimiter = told[1] if told else max(DELIMITERS, key=text.count)
    names = _header(source, _cells(source, 1, text, delimiter))
    for number, text in records:
        cells = _cells(source, number, text, delimiter)
        if len(cells) == len(names):
            yield _row(source, number, names, cells)
        else:
            reason = f"{len(cells)} cells where the header has {len(names)}"
            yield BadRow(
                source, number, reason, "quote cells that hold the delimiter or a line end"
            )


def _records(source: str, parts: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each record; blank lines are skipped.

    A record ends with a line where its quotes are balanced.
    """
    number = 1
    opened = 1
    pending = list[str]()
    size = 0
    odd = 0
    for part in parts:
        ends = part.endswith(("\n", "\r"))
        if pending or part.strip():
            opened = opened if pending else number
            pending.append(part)
            odd ^= part.count('"') & 1
            size += getsizeof(part)
            if size > RECORD:
                remedy = "close its quotes, or write JSON lines, of which long texts are cut"
                raise BadInput(
                    "a row of more than 128 MB", where=f"{source}:{opened}", remedy=remedy
                )
            if ends and not odd:
                yield opened, "".join(pending).rstrip("\r\n")
                pending = []
                size = 0
        number += ends
    if odd:
        raise BadInput(
            "a quote is never closed",
            where=f"{source}:{opened}",
            remedy='write a quote in a cell as ""',
        )
    if pending:
        yield opened, "".join(pending)


def _row(source: str, number: int, names: list[str], cells: list[str]) -> LogRow | BadRow:
    fields: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        if fields.setdefault(name, cell) != cell:
            return BadRow(
                source, number, f"two columns named {name!r:.40} differ", "name every column once"
            )
    fields.pop("", None)
    return LogRow(source, number, fields)


def _header(source: str, names: list[str]) -> list[str]:
    if any(not name.strip() for name in names[1:]) or (len(names) == 1 and not names[0].strip()):
        raise BadInput(
            "the header has an empty name", where=f"{source}:1", remedy="name every column"
        )
    return names


def _cells(source: str, number: int, text: str, delimiter: str) -> list[str]:
    if '"' not in text:
        return text.split(delimiter)
    cells = []
    start = 0
    cell = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"{delimiter}]*))({delimiter}|\Z)')
    while True:
        found = cell.match(text, start)
        if found is None:
            place = f"{source}:{number}"
            raise BadInput(
                "a stray quote",
                where=place,
                remedy='quote the whole cell, and write a quote in it as ""',
            )
        quoted = found.group(1)
        plain = found.group(2)
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        if found.end() == len(text) and not found.group(3):
            return cells
        start = found.end()


FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""A cell that begins with one of these is run by spreadsheets, also behind white space and controls, and also as a
full-width form. Source: OWASP ASVS 1.2.10, OWASP "CSV Injection"."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
"""Nothing in it can be run; an id such as -2 stays what it is."""


def escape_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    A text that already looks escaped gets another apostrophe, so that `unescape_formula` restores
    the original.
    """
    return f"'{value}" if isinstance(value, str) and _is_run(value.lstrip("'")) else value


def unescape_formula(value: Any) -> Any:
    """Undo `escape_formula`: remove an apostrophe that it would have added."""
    if isinstance(value, str) and value.startswith("'") and escape_formula(value[1:]) == value:
        return value[1:]
    return value


def _is_run(text: str) -> bool:
    if NUMBER.fullmatch(text):
        return False
    begins = text.lstrip("".join(map(chr, range(33))) + "\x7f\xa0\ufeff")
    return begins.startswith(FORMULA) or text[:1] in ("\t", "\r", "\n", "\0")
