"""Rows of plain values as a file: Parquet, JSON lines or CSV. A file appears whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pollex.conversations.cells import guarded
from pollex.errors import WrongUse
from pollex.export import Source, draft_of, require_writable
from pollex.parquet import write_parquet_of

Rows = Iterable[Mapping[str, Any]]
FORMATS = (".jsonl", ".csv", ".parquet")


def require_format(path: Path, *read: Source) -> None:
    """Refuses a file that can't be written: before the work, not after it.

    Args:
        read: What the command reads.

    Raises:
        WrongUse: The name ends in no format that is known, or nothing can or may be written there.
    """
    if path.suffix not in FORMATS:
        what = f"no format ends in {path.suffix or 'nothing'!r}"
        raise WrongUse(what, where=str(path), remedy=f"use {', '.join(FORMATS)}")
    require_writable(path, *read)
    path.parent.mkdir(parents=True, exist_ok=True)


def write_rows(path: Path, rows: Rows, columns: Mapping[str, str]) -> None:
    """Writes rows in the format that the name ends in.

    Args:
        columns: Every field with DuckDB's type for it: of Parquet nothing is inferred.
    """
    {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}[path.suffix](path, rows, columns)


def _write_jsonl(path: Path, rows: Rows, columns: Mapping[str, str]) -> None:
    with draft_of(path) as draft, draft.open("w", encoding="utf-8") as out:
        for row in rows:
            line = json.dumps({name: row[name] for name in columns}, ensure_ascii=False)
            out.write(line.encode("utf-8", "replace").decode() + "\n")


def _write_csv(path: Path, rows: Rows, columns: Mapping[str, str]) -> None:
    """RFC 4180; cells that a spreadsheet would run are guarded by an apostrophe; lists and objects are JSON."""
    with draft_of(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_cell(row[name]) for name in columns])


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else guarded(value)


def _write_parquet(path: Path, rows: Rows, columns: Mapping[str, str]) -> None:
    with draft_of(path) as draft:
        lines = draft.with_name(f"{draft.name}.jsonl")
        try:
            _write_jsonl(lines, rows, columns)
            write_parquet_of(lines, draft, columns)
        finally:
            lines.unlink(missing_ok=True)
