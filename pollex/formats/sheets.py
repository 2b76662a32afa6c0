"""Spreadsheets: the rows of each sheet under the names of its first row."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.json_rows import LogRow
from pollex.formats.query_process import (
    SPREADSHEET_KIND,
    ProcessFailed,
    ProcessTimedOut,
    iterate_rows_of_process,
)
from pollex.text import JsonDict

SPREADSHEET_TIMEOUT_SECONDS = 300
"""Seconds in which all of a file is read."""
MAX_HEADER_SEARCH_ROWS = 20
"""Rows of a sheet by which its header is found."""
MIN_TABLE_COLUMNS = 3
"""Columns of a sheet that may have lines of a title above its header."""
MAX_TITLE_ROWS_ABOVE_SHEET_HEADER = 8
"""Lines of a title at most."""


def iterate_spreadsheet_rows(source: str, path: Path) -> Iterator[LogRow | BadRow]:
    """Yield the rows of all sheets that have any.

    Raises:
        BadInput: It can't be opened, or the package that reads spreadsheets isn't installed.
    """
    if not find_spec("python_calamine"):
        hint = "save it as CSV, or install what reads it: pip install 'pollex[excel]'"
        raise BadInput("a spreadsheet", where=source, hint=hint)

    sheets: dict[str, list[Sequence[object]]] = {}
    hint = "save it again, or as CSV"
    try:
        for name, row in iterate_rows_of_process(
            SPREADSHEET_KIND, str(path.absolute()), "", SPREADSHEET_TIMEOUT_SECONDS
        ):
            sheets.setdefault(name, []).append(row)
    except ProcessFailed as failed:
        raise BadInput(f"can't be opened: {failed}", where=source, hint=hint) from None
    except ProcessTimedOut:
        what = f"reading it takes longer than {SPREADSHEET_TIMEOUT_SECONDS} s"
        raise BadInput(what, where=source, hint=hint) from None

    # a sheet needs a header and a row
    filled = []
    for name, rows in sheets.items():
        if len(rows) > 1:
            filled.append((name, rows))

    if not filled:
        raise BadInput(
            "a spreadsheet without rows",
            where=source,
            hint="check that the file is the one you meant",
        )

    for name, rows in filled:
        yield from iterate_sheet_rows(source if len(filled) == 1 else f"{source}!{name}", rows)


def iterate_sheet_rows(source: str, rows: Sequence[Sequence[object]]) -> Iterator[LogRow]:
    """Yield the rows of a sheet under the names of its header, with what stands above that."""
    begin = _find_header_row(rows)
    names = [str(cell).strip() for cell in rows[begin]]
    above = _read_title_fields(rows[:begin], names)
    # rows have the numbers that the sheet shows, from 1
    for number, row in enumerate(rows[begin + 1 :], start=begin + 2):
        cells = {}
        for name, cell in zip(names, row, strict=False):
            if name:
                cells[name] = cell
        if any(cell != "" for cell in cells.values()):
            yield LogRow(source, number, {**above, **cells})


def _find_header_row(rows: Sequence[Sequence[object]]) -> int:
    """Return which row is the header: the first, or the first below lines of a title, which fill a cell or two."""
    filled = []
    for row in rows[:MAX_HEADER_SEARCH_ROWS]:
        filled.append(sum(cell != "" for cell in row))

    first = next((number for number, cells in enumerate(filled) if cells), 0)
    if max(filled, default=0) < MIN_TABLE_COLUMNS:
        return first

    # the first row that is nearly as wide as the widest
    wide = next(number for number, cells in enumerate(filled) if cells >= 0.7 * max(filled))
    if wide <= MAX_TITLE_ROWS_ABOVE_SHEET_HEADER and all(cells <= 2 for cells in filled[:wide]):
        return wide
    return first


def _read_title_fields(rows: Sequence[Sequence[object]], names: list[str]) -> JsonDict:
    """Return what lines above a sheet's header say of all its rows: a name and its value, or a title."""
    above: JsonDict = {}
    for row in rows:
        cells = []
        for cell in row:
            if cell != "":
                cells.append(cell)
        if len(cells) == 2:
            above.setdefault(str(cells[0]).strip(" :"), cells[1])
        elif cells:
            above.setdefault("title", cells[0])

    return {name: value for name, value in above.items() if name not in names}
