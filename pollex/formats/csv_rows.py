"""CSV, read strictly after RFC 4180.

DuckDB's reader takes a ragged file for one of a single column and splits rows wrongly after a stray
quote, silently; Python's `csv` accepts stray quotes. Here a row with too many or too few cells is
kept as a bad one, and a stray quote refuses the file, since nobody knows where the rows after it
begin. Cells are text, always.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from sys import getsizeof
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow
from pollex.text import JsonDict, format_count

_SEPARATOR_LINE_PATTERN = re.compile(r"(?i)\"?sep=([,;\t|])\"?")
DELIMITERS = (",", ";", "\t")
MAX_TITLE_LINES = 12
"""Lines of a title that may stand above the header of a report."""
MIN_TABLE_ROWS = 3
MIN_TABLE_COLUMNS = 3
_TOTALS_PATTERN = re.compile(
    r"(?i)\s*(?:grand |sub)?(?:total|totals|totale|sum|summe|gesamt|suma|somme|razem)\b"
)
MAX_CSV_RECORD_BYTES = 128 << 20
"""Bytes of memory that the text of a record takes at most."""


def iterate_csv_rows(
    source: str,
    lines: Iterable[str],
    notes: dict[str, None] | None = None,
) -> Iterator[LogRow | BadRow]:
    """Yield one row for each record; the first record is the header, or the first below a report's title.

    Args:
        lines: With their line ends, which may stand inside quotes; a long line may come in parts.
        notes: Where to note lines that are no rows: a title above the header, totals at the end.

    Raises:
        BadInput: A bad header, or a quote that RFC 4180 has no meaning for.
    """
    notes = {} if notes is None else notes
    records = _iterate_records(source, lines)
    # enough records for a title, the header and some rows
    begin = list(islice(records, MAX_TITLE_LINES + MIN_TABLE_ROWS))
    separator_line = None
    if begin:
        separator_line = _SEPARATOR_LINE_PATTERN.fullmatch(begin[0][1])

    begin = begin[1:] if separator_line else begin  # Excel's own line before the header
    if not begin:
        return

    # the delimiter is named in Excel's line, or is the most frequent one of the header
    if separator_line:
        delimiter = separator_line[1]
    else:
        delimiter = max(DELIMITERS, key=begin[0][1].count)

    if above := _count_title_lines(source, begin):
        delimiter = max(DELIMITERS, key=begin[above][1].count)
        header = f"{source}:{begin[above][0]}"
        notes[
            f"{header} is the header of the table; {format_count(above, 'line', 'lines')} above it left out"
        ] = None

    # each row but the last, which may have totals
    names = _require_named_columns(
        source,
        _split_cells(source, begin[above][0], begin[above][1], delimiter),
    )
    last: tuple[int, str] | None = None
    for record in chain(begin[above + 1 :], records):
        if last is not None:
            yield _parse_record(source, last, names, delimiter)
        last = record

    if last is None:
        return

    if _is_totals_row(_split_cells(source, *last, delimiter)):
        notes[f"{source}:{last[0]} has totals, and is left out"] = None
    else:
        yield _parse_record(source, last, names, delimiter)


def _parse_record(
    source: str,
    record: tuple[int, str],
    names: list[str],
    delimiter: str,
) -> LogRow | BadRow:
    """Return a record as a row; one with too many or too few cells as a bad one."""
    number, text = record
    cells = _split_cells(source, number, text, delimiter)
    if len(cells) == len(names):
        return _build_row(source, number, names, cells)

    reason = f"{len(cells)} cells where the header has {len(names)}"
    return BadRow(
        source,
        number,
        reason,
        "quote cells that hold the delimiter or a line end",
    )


def _count_title_lines(source: str, begin: Sequence[tuple[int, str]]) -> int:
    """Return how many lines stand above the header: titles, which fill a cell or two of the table's many."""
    delimiter = max(
        DELIMITERS,
        key=lambda sign: sum(text.count(sign) for _, text in begin),
    )
    try:
        cells = [_split_cells(source, number, text, delimiter) for number, text in begin]
    except BadInput:
        return 0

    # a title is told only above a table of several columns and rows
    width = max(map(len, cells))
    if width < MIN_TABLE_COLUMNS or len(begin) < MIN_TABLE_ROWS:
        return 0

    filled = []
    for row in cells:
        filled.append(sum(bool(cell.strip()) for cell in row))

    if filled[0] > width // 2:
        return 0

    # the first row with all of its cells filled is the header if all below are as wide
    place = next(
        (n for n, number in enumerate(filled[:MAX_TITLE_LINES]) if number == width),
        0,
    )
    fits = all(len(row) == width for row in cells[place:])
    if fits and max(filled[:place], default=width) <= width // 2:
        return place
    return 0


def _is_totals_row(cells: Sequence[str]) -> bool:
    """Return whether the last row of a table has its totals: it says so, and most cells are empty."""
    empty = sum(not cell.strip() for cell in cells)
    return (
        len(cells) >= MIN_TABLE_COLUMNS
        and empty * 2 >= len(cells)
        and bool(_TOTALS_PATTERN.match(cells[0]))
    )


def _iterate_records(source: str, parts: Iterable[str]) -> Iterator[tuple[int, str]]:
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
            # a record goes on until a line ends with its quotes balanced
            opened = opened if pending else number
            pending.append(part)
            # 1 while an odd number of quotes was read, so that a line's end is inside of a cell
            odd ^= part.count('"') & 1
            size += getsizeof(part)
            if size > MAX_CSV_RECORD_BYTES:
                hint = "close its quotes, or write JSON lines, of which long texts are cut"
                raise BadInput(
                    "a row of more than 128 MB",
                    where=f"{source}:{opened}",
                    hint=hint,
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
            hint='write a quote in a cell as ""',
        )

    if pending:
        yield opened, "".join(pending)


def _build_row(
    source: str,
    number: int,
    names: list[str],
    cells: list[str],
) -> LogRow | BadRow:
    fields: JsonDict = {}
    for name, cell in zip(names, cells, strict=True):
        if fields.setdefault(name, cell) != cell:
            return BadRow(
                source,
                number,
                f"two columns named {name!r:.40} differ",
                "name every column once",
            )

    # an index of pandas is a first column without a name
    fields.pop("", None)
    return LogRow(source, number, fields)


def _require_named_columns(source: str, names: list[str]) -> list[str]:
    if any(not name.strip() for name in names[1:]) or (len(names) == 1 and not names[0].strip()):
        raise BadInput(
            "the header has an empty name",
            where=f"{source}:1",
            hint="name every column",
        )

    return names


def _split_cells(
    source: str,
    number: int,
    text: str,
    delimiter: str,
) -> list[str]:
    # most lines have no quotes, and are split at once
    if '"' not in text:
        return text.split(delimiter)

    cells = []
    start = 0
    cell = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"{delimiter}]*))({delimiter}|\Z)')
    while True:
        match = cell.match(text, start)
        if match is None:
            place = f"{source}:{number}"
            raise BadInput(
                "a stray quote",
                where=place,
                hint='quote the whole cell, and write a quote in it as ""',
            )

        quoted = match.group(1)
        plain = match.group(2)
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        # a delimiter at the very end begins one more cell, which is empty
        if match.end() == len(text) and not match.group(3):
            return cells
        start = match.end()


FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""A cell that begins with one of these is run by spreadsheets, also behind white space and controls, and also as a
full-width form. Source: OWASP ASVS 1.2.10, OWASP "CSV Injection"."""

PLAIN_NUMBER_PATTERN = re.compile(r"[+-]?\d+(\.\d+)?")
"""Nothing in it can be run; an id such as -2 stays what it is."""


def escape_formula(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    A text that already looks escaped gets another apostrophe, so that `unescape_formula` restores
    the original.
    """
    if isinstance(value, str) and _is_spreadsheet_formula(value.lstrip("'")):
        return f"'{value}"
    return value


def unescape_formula(value: object) -> Any:
    """Undo `escape_formula`: remove an apostrophe that it would have added."""
    if isinstance(value, str) and value.startswith("'") and escape_formula(value[1:]) == value:
        return value[1:]
    return value


def _is_spreadsheet_formula(text: str) -> bool:
    if PLAIN_NUMBER_PATTERN.fullmatch(text):
        return False

    begins = text.lstrip("".join(map(chr, range(33))) + "\x7f\xa0\ufeff")
    return begins.startswith(FORMULA_PREFIXES) or text[:1] in ("\t", "\r", "\n", "\0")
