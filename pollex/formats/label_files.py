"""Labels in a separate file: conversation id, label, how it was drawn, and annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pollex.conversations.conversation import DRAWN, Conversation, Label
from pollex.conversations.logs import BadRow
from pollex.errors import BadInput
from pollex.formats.fields import ID_NAMES, Picker, ReadOptions, look_up
from pollex.formats.files import find_files, rows_of
from pollex.formats.json_rows import Row
from pollex.formats.labels import EMPTY

IDS = ("text_id", *ID_NAMES)
ANSWER = "answer"
SOURCE = "source"
RANDOM, VOLUNTARY = "random", "voluntary"


class GivenLabel(NamedTuple):
    """A label of a conversation.

    Attributes:
        drawn: How the conversation came before whoever labeled it: `random`, `voluntary`, or the name of a queue; empty
            where nobody says.
        source: Who gave it; empty where nobody says.
    """

    id: str
    label: Label
    drawn: str
    source: str


def read_labels(path: Path, reading: ReadOptions) -> tuple[list[GivenLabel], tuple[BadRow, ...]]:
    """Read the labels of a file; rows with an empty label are left out.

    Args:
        path: JSON lines, CSV or Parquet, such as `label next --out` or the label pages write.

    Raises:
        BadInput: The file can't be read, or more rows are bad than `ReadOptions.max_bad` allows.
    """
    found: list[tuple[GivenLabel, str, Row]] = []
    bad: list[BadRow] = []
    picker = None
    for name in find_files([path]):
        for row in rows_of(name, reading.encoding):
            if isinstance(row, BadRow):
                bad.append(row)
                continue
            picker = picker or Picker(_options(row, reading))
            try:
                found.append((*_label(row, picker), row))
            except BadInput as error:
                bad.append(BadRow(row.source, row.line, error.what, error.remedy))
    taken = {"", EMPTY} | (picker.numbers if picker else set())
    bad += [
        BadRow(row.source, row.line, f"{number} is neither up nor down")
        for _, number, row in found
        if number not in taken
    ]
    if len(bad) > reading.max_bad:
        raise BadInput(f"{len(bad)} rows can't be read: {bad[0]}", where=str(path), remedy="correct them")
    return [one for one, number, _ in found if one.label is not Label.NONE and number in taken], tuple(bad)


def labels_in(conversations: Sequence[Conversation], unsaid: str) -> list[GivenLabel]:
    """Return the labels that conversations carry.

    Args:
        unsaid: How those labels were drawn whose rows don't say it.
    """
    return [
        GivenLabel(c.id, c.label, drawn_of(c) or unsaid, _word(c.metadata, SOURCE) or c.judge or "")
        for c in conversations
        if c.label is not Label.NONE
    ]


def drawn_of(conversation: Conversation) -> str:
    """Return how a label was drawn, as the log says; empty if it doesn't."""
    return _word(conversation.metadata, DRAWN)


def _options(row: Row, reading: ReadOptions) -> ReadOptions:
    """Read labels from `answer`, as the label page calls them, unless a field is named."""
    return replace(reading, label_field=ANSWER) if reading.label_field is None and ANSWER in row.fields else reading


def _label(row: Row, picker: Picker) -> tuple[GivenLabel, str]:
    picked = picker.pick(row.fields, IDS)
    if picked.id is None:
        raise BadInput("the label has no conversation id", remedy="add a field `id`")
    source = _word(picked.rest, SOURCE) or picked.judge or ""
    return GivenLabel(picked.id, picked.label, _word(picked.rest, DRAWN), source), picked.number


def _word(fields: dict[str, object], name: str) -> str:
    value = look_up(fields, name)
    return value.strip() if isinstance(value, str) else ""
