"""Rows of a log before anything is known of their shape, and those that can't be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        source: The file's name, or `-`.
        line: From 1: the line in JSON lines and CSV, where it begins; the item in a JSON list; the row in Parquet.
        fields: As the file has them.
    """

    source: str
    line: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row from which no conversation could be read, where it stands, why, and what to do."""

    source: str
    line: int
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f" → {self.remedy}" if self.remedy else ""
        return f"{self.source}:{self.line}: {self.reason}{advice}"
