"""Tables between tabs as databases write them: a row a line, plain quotes, and escapes in place of line ends."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from pollex.conversations.logs import BadRow
from pollex.formats.json_rows import LogRow

MAX_LINES_EXAMINED = 400
"""Lines by which such a table is told."""
NULL_CELL_TEXT = "\\N"
_ESCAPE_PATTERN = re.compile(r"\\(.)")
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_ESCAPED_LINE_END_PATTERN = re.compile(r"\\n\\n|[.!?:,;–]\\n(?![a-z])")
"""A line's end between words; a name of a folder is none."""


def are_lines_escaped_tab_table(lines: Iterable[str]) -> bool:
    """Return whether lines are such a table: as many tabs in each, no quoted cell, and an escape."""
    begin = [line.rstrip("\r\n") for line in islice(lines, MAX_LINES_EXAMINED)]
    tabs = set()
    for line in begin:
        if line.strip():
            tabs.add(line.count("\t"))

    if len(begin) < 2 or len(tabs) != 1 or tabs == {0}:
        return False

    cells = []
    for line in begin:
        cells.extend(line.split("\t"))

    if any(len(cell) > 1 and cell.startswith('"') and cell.endswith('"') for cell in cells):
        return False
    return NULL_CELL_TEXT in cells or any(map(_ESCAPED_LINE_END_PATTERN.search, cells))


def iterate_tab_rows(source: str, lines: Iterable[str]) -> Iterator[LogRow | BadRow]:
    """Yield one row for each line below the header; a cell of a missing value is empty."""
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue

        cells = [_unescape_cell(cell) for cell in text.split("\t")]
        if not names:
            names = cells
        elif len(cells) == len(names):
            yield LogRow(source, number, dict(zip(names, cells, strict=True)))
        else:
            reason = f"{len(cells)} cells where the header has {len(names)}"
            yield BadRow(source, number, reason, "write a tab in a cell as \\t")


def _unescape_cell(cell: str) -> str:
    if cell == NULL_CELL_TEXT:
        return ""
    return _ESCAPE_PATTERN.sub(lambda escape: _ESCAPED_CHARACTERS.get(escape[1], escape[1]), cell)
