"""Requests for labels, as a file to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pollex.errors import WrongUse
from pollex.formats.questionnaires import SheetQuestion, questionnaire_at
from pollex.formats.write import write_lines, write_rows
from pollex.text import printable

Row = dict[str, Any]

LOGGED = "logged"
"""Where a row to be written has its conversation, as the log has it."""

SHEET = {"text_id": "VARCHAR", "question": "VARCHAR", "judge": "VARCHAR", "answer": "DOUBLE", "asks": "VARCHAR"}
"""Columns of a sheet to fill in, with DuckDB's types."""

FORMATS = (".jsonl", ".csv")


def write_requests(out: Path, rows: Sequence[Row], questions: Sequence[SheetQuestion] = ()) -> None:
    """Write what to label next.

    JSON lines hold conversations whole and with an empty thumb: filled in, the file can be learned from. CSV leaves
    the conversations out. With questions, a row asks one about one text: filled in, it is a judgment for a calibrator.
    """
    if questions:
        write_rows(out, (one for row in rows for one in _sheet(row, questions)), SHEET)
        return
    if out.suffix == ".jsonl":
        write_lines(out, (row.get(LOGGED, row) for row in rows))
        return
    names = [name for name in rows[0] if name not in (LOGGED, "probabilities")] if rows else ["id"]
    # What a conversation says is for the eye; ids and judges stay as they are, or nothing would join them again.
    shown = ({**row, "begins": printable(row["begins"])} if "begins" in row else row for row in rows)
    write_rows(out, shown, dict.fromkeys(names, "VARCHAR"))


def sheet_for(questionnaire: str | None, out: Path | None) -> list[SheetQuestion]:
    """Return the questions of a sheet to fill in; none without a questionnaire.

    Raises:
        BadInput: Something in it is missing or wrong.
        WrongUse: There is no such questionnaire, or no file that would have the sheet.
    """
    if questionnaire is not None and out is None:
        what = "a questionnaire makes a sheet to fill in, and no file is named for it"
        raise WrongUse(what, remedy="name one", option={"out": "sheet.csv"})
    return questionnaire_at(questionnaire) if questionnaire is not None else []


def _sheet(row: Row, questions: Sequence[SheetQuestion]) -> Iterator[Row]:
    for one in questions:
        options = [f"{value:g}: {words}" for value, words in one.options] + ([f"empty: {one.skip}"] if one.skip else [])
        about = {"text_id": row.get("text_id", row.get("id")), "question": one.id, "judge": row.get("judge")}
        yield about | {"answer": None, "asks": f"{one.text} ({'; '.join(options)})"}
