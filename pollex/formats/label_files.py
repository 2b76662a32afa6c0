"""Labels in a separate file: conversation id, label, how it was drawn, and annotator."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pollex.conversations.conversation import DRAW_METHOD_FIELD, Conversation, Label
from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, PollexError, WrongUse
from pollex.formats.encodings import DEFAULT_TEXT_ENCODING
from pollex.formats.fields import WHOLE_CONVERSATION_ID_NAMES, FieldPicker, ReadOptions
from pollex.formats.files import find_files_of_sources, iterate_file_rows
from pollex.formats.json_rows import LogRow
from pollex.formats.labels import NAME_SHOWN_FOR_EMPTY_LABEL
from pollex.formats.paths import get_path_value
from pollex.formats.questionnaires import SheetQuestion, load_questionnaire
from pollex.formats.write import write_json_lines, write_rows
from pollex.outputs import EDITED, STDOUT, require_replaceable
from pollex.text import JsonDict, escape_controls, format_count

LabelRequestRow = JsonDict

LOGGED_CONVERSATION_ROW_KEY = "logged"
"""Where a row to be written has its conversation, as the log has it."""

SHEET_COLUMN_TYPES = {
    "text_id": "VARCHAR",
    "question": "VARCHAR",
    "judge": "VARCHAR",
    "answer": "DOUBLE",
    "asks": "VARCHAR",
}
"""Columns of a sheet to fill in, with DuckDB's types."""

LABEL_FILE_ENDINGS = (".jsonl", ".csv")


def write_label_requests(
    out: Path,
    rows: Sequence[LabelRequestRow],
    questions: Sequence[SheetQuestion] = (),
    conversations: Mapping[str, Conversation] | None = None,
) -> None:
    """Write what to label next.

    JSON lines hold conversations whole and with an empty thumb: filled in, the file can be learned
    from. CSV leaves the conversations out. With questions, a row asks one about one text: filled
    in, it is a judgment for a calibrator.

    Args:
        conversations: By id, where they are known: a question that doesn't apply to one has no row.
    """
    if questions:
        sheet_rows: list[LabelRequestRow] = []
        for row in rows:
            sheet_rows.extend(_iterate_sheet_rows(row, questions, conversations or {}))
        write_rows(out, sheet_rows, SHEET_COLUMN_TYPES)
        return
    if out.suffix == ".jsonl":
        write_json_lines(out, (row.get(LOGGED_CONVERSATION_ROW_KEY, row) for row in rows))
        return

    if rows:
        names = []
        for name in rows[0]:
            if name not in (LOGGED_CONVERSATION_ROW_KEY, "probabilities"):
                names.append(name)
    else:
        names = ["id"]

    # What a conversation says is for the eye; ids and judges stay as they are, or nothing would
    # join them again.
    shown = (
        {**row, "begins": escape_controls(row["begins"])} if "begins" in row else row
        for row in rows
    )
    write_rows(out, shown, dict.fromkeys(names, "VARCHAR"))


ANSWER_FIELD_NAMES_TO_FILL_IN = ("label", "thumb", "thumbs", "answer")
"""What people fill in, beside the log's own field of labels."""


def require_label_file_not_filled_in(out: Path | None, label_field: str | None = None) -> None:
    """Refuse to write what to label over a file that a person filled in.

    Args:
        label_field: The log's field of labels; a sheet has answers.

    Raises:
        WrongUse: There are labels or answers in it, or it was changed since pollex wrote it.
    """
    if out is None or out == STDOUT or not out.is_file():
        return

    require_replaceable(out, refused=EDITED)
    names = [*ANSWER_FIELD_NAMES_TO_FILL_IN, *([label_field] if label_field else [])]
    filled = 0
    # a file that can't be read has no labels that could be lost
    with suppress(PollexError):
        for row in iterate_file_rows(str(out), DEFAULT_TEXT_ENCODING):
            if isinstance(row, BadRow):
                continue
            values = [get_path_value(row.fields, name) for name in names]
            filled += any(value not in (None, "") for value in values)

    if filled:
        raise WrongUse(
            f"people filled in {format_count(filled, 'row')} of this file, and they would be lost",
            where=str(out),
            hint="learn from it first, then give another name",
            option="out",
        )


def load_sheet_questions(questionnaire: str | None, out: Path | None) -> list[SheetQuestion]:
    """Return the questions of a sheet to fill in; none without a questionnaire.

    Raises:
        BadInput: Something in it is missing or wrong.
        WrongUse: There is no such questionnaire, or no file that would have the sheet.
    """
    if questionnaire is not None and out is None:
        what = "a questionnaire makes a sheet to fill in, and no file is named for it"
        raise WrongUse(what, hint="name one", option={"out": "sheet.csv"})
    if questionnaire is not None:
        return load_questionnaire(questionnaire)
    return []


def _iterate_sheet_rows(
    row: LabelRequestRow,
    questions: Sequence[SheetQuestion],
    conversations: Mapping[str, Conversation],
) -> Iterator[LabelRequestRow]:
    conversation = conversations.get(row.get("id", ""))
    for question in questions:
        if conversation is not None and not question.applies_to(conversation):
            continue
        options = [f"{value:g}: {words}" for value, words in question.options] + (
            [f"empty: {question.skip}"] if question.skip else []
        )
        about = {
            "text_id": row.get("text_id", row.get("id")),
            "question": question.id,
            "judge": row.get("judge"),
        }
        yield about | {"answer": None, "asks": f"{question.text} ({'; '.join(options)})"}


LABEL_ID_NAMES = ("text_id", *WHOLE_CONVERSATION_ID_NAMES)
ANSWER_COLUMN = "answer"
LABEL_SOURCE_FIELD = "source"
RANDOM_DRAW_METHOD = "random"
VOLUNTARY_DRAW_METHOD = "voluntary"


class ConversationLabel(NamedTuple):
    """A label of a conversation.

    Attributes:
        drawn: How the conversation came before whoever labeled it: `random`, `voluntary`, or the
            name of a queue; empty where nobody says.
        source: Who gave it; empty where nobody says.
    """

    id: str
    label: Label
    drawn: str
    source: str


def read_label_file(
    path: Path, reading: ReadOptions
) -> tuple[list[ConversationLabel], tuple[BadRow, ...]]:
    """Read the labels of a file; rows with an empty label are left out.

    Args:
        path: JSON lines, CSV or Parquet, such as `label next --out` or the label pages write.

    Raises:
        BadInput: The file can't be read, or more rows are bad than `ReadOptions.max_bad` allows.
    """
    labels: list[tuple[ConversationLabel, str, LogRow]] = []
    bad: list[BadRow] = []
    picker = None
    for name in find_files_of_sources([path]):
        for row in iterate_file_rows(name, reading.encoding, query_seconds=reading.query_seconds):
            if isinstance(row, BadRow):
                bad.append(row)
                continue
            if picker is None:
                field = (
                    ANSWER_COLUMN
                    if reading.label_field is None and ANSWER_COLUMN in row.fields
                    else reading.label_field
                )
                # the label page calls it `answer`
                picker = FieldPicker(replace(reading, label_field=field))

            try:
                labels.append((*_parse_label_row(row, picker), row))
            except BadInput as error:
                bad.append(BadRow(row.source, row.line, error.what, error.hint))

    # labels in words, empty ones, and the numbers that are thumbs
    thumb_numbers = {"", NAME_SHOWN_FOR_EMPTY_LABEL} | (picker.numbers if picker else set())
    # numbers that turn out to be no thumbs
    for _, number, row in labels:
        if number not in thumb_numbers:
            bad.append(
                BadRow(
                    row.source,
                    row.line,
                    f"{number} is neither up nor down",
                )
            )

    if len(bad) > reading.max_bad:
        raise BadInput(
            f"{len(bad)} rows can't be read: {bad[0]}",
            where=str(path),
            hint="correct them",
        )

    thumb_labels = []
    for label, number, _ in labels:
        if label.label is not Label.NONE and number in thumb_numbers:
            thumb_labels.append(label)

    return thumb_labels, tuple(bad)


def list_conversation_labels(
    conversations: Sequence[Conversation], unsaid: str
) -> list[ConversationLabel]:
    """Return the labels that conversations carry.

    Args:
        unsaid: How those labels were drawn whose rows don't say it.
    """
    labels: list[ConversationLabel] = []
    for c in conversations:
        if c.label is not Label.NONE:
            labels.append(
                ConversationLabel(
                    c.id,
                    c.label,
                    get_draw_method(c) or unsaid,
                    _get_text(c.metadata, LABEL_SOURCE_FIELD) or c.judge or "",
                )
            )

    return labels


def get_draw_method(conversation: Conversation) -> str:
    """Return how a label was drawn, as the log says; empty if it doesn't."""
    return _get_text(conversation.metadata, DRAW_METHOD_FIELD)


def _parse_label_row(row: LogRow, picker: FieldPicker) -> tuple[ConversationLabel, str]:
    picked = picker.pick(row.fields, LABEL_ID_NAMES)
    if picked.id is None:
        raise BadInput("the label has no conversation id", hint="add a field `id`")

    source = _get_text(picked.rest, LABEL_SOURCE_FIELD) or picked.judge or ""
    return ConversationLabel(
        picked.id, picked.label, _get_text(picked.rest, DRAW_METHOD_FIELD), source
    ), picked.number


def _get_text(fields: dict[str, object], name: str) -> str:
    value = get_path_value(fields, name)
    if isinstance(value, str):
        return value.strip()
    return ""
