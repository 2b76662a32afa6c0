"""Tables of answers and of judgments, read from files: CSV, TSV, JSON lines, JSON or Parquet, in any known shape."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.tables import shape_of
from pollex.calibration.tables.answers import AnswerTable, answer_table
from pollex.calibration.tables.faults import Fault, told
from pollex.calibration.tables.judged import JudgmentTable, judgment_table
from pollex.calibration.tables.shape import Records, Side
from pollex.conversations.cells import unguarded
from pollex.conversations.files import find_files, rows_of
from pollex.conversations.rows import BadRow, Row

Sources = str | Path | Sequence[str | Path]

ENCODING = "utf-8-sig"
GUARDED = (".csv", ".tsv")
"""Endings of files whose cells may have an apostrophe before an id such as =1+1: pollex puts it there."""


def read_answers(
    sources: Sources,
    *,
    scales: Sequence[Scale] | None = None,
    options: Mapping[str, Sequence[float]] | None = None,
    nominal: Collection[str] = (),
) -> AnswerTable:
    """Answer distributions of texts.

    Args:
        sources: Files, globs, or `-`.
        scales: The questions of a fitted calibrator; None: those of the table.
        options: By question, the options that it allows; the others' are those that occur.
        nominal: Questions whose options have no order.

    Raises:
        BadInput: A file that can't be read, has no known shape, or holds nothing that can be used.
        WrongUse: A source names nothing.
    """
    records, bad_rows = _records(sources, "answers")
    table = answer_table(records, scales=scales, options=options, nominal=nominal)
    return AnswerTable(table.texts, table.X, table.scales, table.groups, (*bad_rows, *table.faults))


def read_judgments(
    sources: Sources,
    answers: AnswerTable,
    *,
    main: str | None = None,
    nominal: Collection[str] = (),
    questionnaire: Questionnaire | None = None,
) -> JudgmentTable:
    """What people said about the texts of a table of answers.

    Args:
        sources: Files, globs, or `-`.
        main: Id of the main question; None: the one called Q0 or overall, or the only one that people answered.
        nominal: Questions whose options have no order.
        questionnaire: Of a fitted calibrator; None: of the answers, and what only people answer.

    Raises:
        BadInput: A file that can't be read or has no known shape, or nothing joins.
        BadLabels: All answers to the main question are alike.
        WrongUse: No question is called so, or which is the main one has to be said.
    """
    records, bad_rows = _records(sources, "judgments")
    table = judgment_table(records, answers, main=main, nominal=nominal, questionnaire=questionnaire)
    faults = (*bad_rows, *table.faults)
    return JudgmentTable(table.judgments, table.questionnaire, table.groups, faults, table.incomplete)


def _records(sources: Sources, side: Side) -> tuple[Records, list[Fault]]:
    """Records of all files, and the rows that could not be read."""
    files = find_files([sources] if isinstance(sources, (str, Path)) else sources)
    read = {file: list(rows_of(file, ENCODING)) for file in files}
    good = {file: [row for row in rows if isinstance(row, Row)] for file, rows in read.items()}
    good = {file: _unguarded(rows) if Path(file).suffix.lower() in GUARDED else rows for file, rows in good.items()}
    tables = [shape_of(rows, side).records(rows, side) for rows in good.values()]
    bad = [str(row) for rows in read.values() for row in rows if isinstance(row, BadRow)]
    return reduce(Records.joined, tables), told("rows can't be read", bad)


def _unguarded(rows: Sequence[Row]) -> list[Row]:
    """Rows with the ids that they had before we wrote them.

    A column in which one id stands with the apostrophe and without it was not written by us, and stays as it is.
    """
    cells: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.fields.items():
            if isinstance(value, str):
                cells.setdefault(column, set()).add(value)
    bare = {
        column: {value: own for value in values if (own := unguarded(value)) != value}
        for column, values in cells.items()
    }
    bare = {column: found for column, found in bare.items() if found and not cells[column] & set(found.values())}
    return [_with(row, bare) for row in rows] if bare else list(rows)


def _with(row: Row, bare: Mapping[str, Mapping[str, str]]) -> Row:
    fields = {
        column: bare[column].get(value, value) if column in bare and isinstance(value, str) else value
        for column, value in row.fields.items()
    }
    return replace(row, fields=fields)
