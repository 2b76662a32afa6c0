"""Requests for labels, as a file to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pollex.formats.write import write_lines, write_rows
from pollex.text import printable

Row = dict[str, Any]

LOGGED = "logged"
"""Where a row to be written has its conversation, as the log has it."""

FORMATS = (".jsonl", ".csv")


def write_requests(out: Path, rows: Sequence[Row]) -> None:
    """Write what to label next.

    JSON lines hold conversations whole and with an empty thumb: filled in, the file can be learned from. CSV leaves
    the conversations out.
    """
    if out.suffix == ".jsonl":
        write_lines(out, (row.get(LOGGED, row) for row in rows))
        return
    names = [name for name in rows[0] if name not in (LOGGED, "probabilities")] if rows else ["id"]
    # What a conversation says is for the eye; ids and judges stay as they are, or nothing would join them again.
    shown = ({**row, "begins": printable(row["begins"])} if "begins" in row else row for row in rows)
    write_rows(out, shown, dict.fromkeys(names, "VARCHAR"))
