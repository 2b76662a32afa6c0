"""Tables of answers and judgments from files: CSV, TSV, JSON lines, JSON or Parquet."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, NotText
from pollex.formats.csv_rows import unescape_formula
from pollex.formats.files import find_files_of_sources, iterate_file_rows
from pollex.formats.json_rows import LogRow
from pollex.rooms.questionnaire.formats.answer_tables import (
    AnswerRecords,
    TableShape,
    TableSide,
    find_shape,
)
from pollex.rooms.questionnaire.formats.answers import (
    AnswerTable,
    TableIssue,
    make_answer_table,
    make_named_issues,
)
from pollex.rooms.questionnaire.formats.judgments import JudgmentTable, make_judgment_table
from pollex.text import replace_surrogates

TableSources = str | Path | Sequence[str | Path]

TABLE_ENCODING = "utf-8-sig"
ESCAPED_FILE_ENDINGS = (".csv", ".tsv")
"""Endings of files whose cells may have an apostrophe before an id such as =1+1: pollex puts it there."""


def read_answers(
    sources: TableSources,
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
    records, bad_rows = _read_records(sources, "answers")
    table = make_answer_table(records, scales=scales, options=options, nominal=nominal)
    return AnswerTable(
        table.texts,
        table.X,
        table.scales,
        table.groups,
        (*bad_rows, *table.faults),
    )


def read_judgments(
    sources: TableSources,
    answers: AnswerTable,
    *,
    main: str | None = None,
    nominal: Collection[str] = (),
    questionnaire: Questionnaire | None = None,
) -> JudgmentTable:
    """Read people's judgments of the texts of a table of answers.

    Args:
        sources: Files, globs, or `-`.
        main: Id of the main question; None: the one called Q0 or overall, or the only one that
            people answered.
        nominal: Questions whose options have no order.
        questionnaire: Of a fitted calibrator; None: of the answers, and what only people answer.

    Raises:
        BadInput: A file that can't be read or has no known shape, or nothing joins.
        BadLabels: All answers to the main question are alike.
        WrongUse: No question is called so, or which is the main one has to be said.
    """
    # ids of the other table: where one has an apostrophe there, it is the id's own
    joined = {*answers.texts, *(scale.question for scale in answers.scales)}
    records, bad_rows = _read_records(sources, "judgments", joined)
    table = make_judgment_table(
        records,
        answers,
        main=main,
        nominal=nominal,
        questionnaire=questionnaire,
    )

    return JudgmentTable(
        table.judgments,
        table.questionnaire,
        table.groups,
        (*bad_rows, *table.faults),
    )


def _read_records(
    sources: TableSources,
    side: TableSide,
    joined: Collection[str] = (),
) -> tuple[AnswerRecords, list[TableIssue]]:
    """Read the records of all files, and report rows that could not be read.

    Args:
        joined: Ids of the other table.
    """
    files = find_files_of_sources([sources] if isinstance(sources, (str, Path)) else sources)
    read = {file: _read_rows(file) for file in files}
    good = {file: [row for row in rows if isinstance(row, LogRow)] for file, rows in read.items()}
    perhaps_ours = {
        file: rows
        for file, rows in good.items()
        if Path(file).suffix.lower() in ESCAPED_FILE_ENDINGS
    }
    good |= {file: _unescape_rows(rows, joined) for file, rows in perhaps_ours.items()}
    bad = [str(row) for rows in read.values() for row in rows if isinstance(row, BadRow)]
    tables = [_find_shape(file, rows, side, bad).records(rows, side) for file, rows in good.items()]

    return reduce(AnswerRecords.joined, tables), make_named_issues("row", "that can't be read", bad)


def _read_rows(file: str) -> list[LogRow | BadRow]:
    try:
        read = iterate_file_rows(file, TABLE_ENCODING)  # ids and names go into other files
        rows: list[LogRow | BadRow] = []
        for row in read:
            rows.append(
                replace(row, fields=replace_surrogates(row.fields))
                if isinstance(row, LogRow)
                else row
            )

        return rows
    except NotText as error:  # tables have one encoding, so there is none to name
        raise BadInput(error.what, where=error.where, hint="save it as UTF-8") from None


def _find_shape(
    file: str,
    rows: Sequence[LogRow],
    side: TableSide,
    bad: Sequence[str],
) -> TableShape:
    try:
        return find_shape(rows, side)
    except BadInput as error:
        if rows:
            raise
        why = f", as its rows can't be read: {bad[0]}" if bad else ""
        raise BadInput(error.what + why, where=file, hint=error.advice) from None


def _unescape_rows(rows: Sequence[LogRow], joined: Collection[str]) -> list[LogRow]:
    """Undo the escaping of cells and column names in files that pollex wrote.

    A file that has one of the texts both with and without the apostrophe was not written by pollex,
    and stays as it is. An id that the other table has in this spelling stays, too.
    """
    texts = set()
    for row in rows:
        for pair in row.fields.items():
            for text in pair:
                if isinstance(text, str):
                    texts.add(text)

    # the spelling without the apostrophe, of texts that may have got one
    bare = {}
    for text in texts:
        if text not in joined and (unescaped := unescape_formula(text)) != text:
            bare[text] = unescaped

    # both spellings in one file: the apostrophes are the user's own
    if not bare or texts & (set(bare.values()) - bare.keys()):
        return list(rows)

    return [
        replace(
            row,
            fields={
                bare.get(name, name): _unescape_value(value, bare)
                for name, value in row.fields.items()
            },
        )
        for row in rows
    ]


def _unescape_value(value: object, bare: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return bare.get(value, value)
    return value
