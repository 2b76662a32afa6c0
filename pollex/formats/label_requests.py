"""Labels to ask people for: shown as a table, and written to be filled in."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pollex.errors import WrongUse
from pollex.formats.csv_rows import guarded
from pollex.formats.write import Source, draft_of, require_writable
from pollex.text import printable

Row = dict[str, Any]

LOGGED = "logged"
"""Where a row to be written has its conversation, as the log has it."""


def writer_for(out: Path | None, *read: Source) -> Callable[[Sequence[Row]], None]:
    """What writes the format that the name ends in; nothing where there is no name.

    Args:
        read: What the command reads.

    Raises:
        WrongUse: It ends in none that is known, or can't or may not be written there.
    """
    if out is None:
        return lambda _rows: None
    writers: dict[str, Callable[[Path, Sequence[Row]], None]] = {".jsonl": _write_jsonl, ".csv": _write_csv}
    if out.suffix not in writers:
        raise WrongUse(
            f"no format ends in {out.suffix or 'nothing'!r}", where=str(out), remedy=f"use {', '.join(writers)}"
        )
    require_writable(out, *read)

    def written(rows: Sequence[Row]) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(out) as draft:
            writers[out.suffix](draft, rows)

    return written


def _write_jsonl(draft: Path, rows: Sequence[Row]) -> None:
    """Conversations whole and with an empty thumb: filled in, the file can be learnt from."""
    with draft.open("w", encoding="utf-8", errors="replace") as file:
        for row in rows:  # a log's own fields may hold NaN, figures may not
            file.write(json.dumps(row.get(LOGGED, row), ensure_ascii=False, allow_nan=LOGGED in row) + "\n")


def _write_csv(draft: Path, rows: Sequence[Row]) -> None:
    """Without the conversations; cells that a spreadsheet would run are guarded by an apostrophe."""
    names = [name for name in rows[0] if name not in (LOGGED, "probabilities")] if rows else ["id"]
    with draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([guarded(_shown(name, row[name])) for name in names] for row in rows)


def _shown(name: str, value: Any) -> Any:
    """What a conversation says is for the eye; ids and judges stay as they are, or nothing would join them again."""
    return printable(value) if name == "begins" else value
