"""Cases as JSON lines, for tools of one's own."""

from __future__ import annotations

from pollex.formats.cases.case import CaseSheet, json_lines


def line_files(sheet: CaseSheet) -> dict[str, str]:
    """Write one case a line: messages, checks, and where it comes from."""
    return {"cases.jsonl": json_lines(case.row for case in sheet.cases)}
