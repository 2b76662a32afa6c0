"""Cells of spreadsheets as JSON has them, read in a process of its own: see `query_process`."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice

from pollex.formats.databases import QueryCancelCallbacks, QueryError

JsonCell = str | int | float | bool


def iterate_spreadsheet_cells(
    place: str,
    _query: str,
    _cancels: QueryCancelCallbacks,
) -> Iterator[tuple[str, list[JsonCell]]]:
    """Yield the rows of all sheets of a file, each with the name of its sheet.

    Raises:
        QueryError: It can't be opened.
    """
    from python_calamine import CalamineError, CalamineWorkbook  # An extra that few need.

    try:
        book = CalamineWorkbook.from_path(place)
        for name in book.sheet_names:
            sheet = book.get_sheet_by_name(name)
            # a sheet begins with its first filled row; an empty one has none
            first = sheet.start[0] if sheet.start else 0
            for row in islice(sheet.iter_rows(), first, None):
                cells = [_convert_cell(cell) for cell in row]
                while cells and cells[-1] == "":
                    cells.pop()
                yield name, cells
    except CalamineError as error:
        raise QueryError(error) from None


def _convert_cell(cell: str | float | bool | date | time | timedelta) -> JsonCell:
    """Return a cell as JSON has it: whole numbers without a point, times as ISO text."""
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell
