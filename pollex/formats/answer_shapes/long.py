"""Long tables: one row for each option or judgment; further columns are groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.formats.answer_shapes.shape import Records, Row, Shape, Side, name

NEEDED: dict[Side, tuple[str, ...]] = {
    "answers": ("text_id", "question", "option", "probability"),
    "judgments": ("text_id", "question", "answer"),
}
KNOWN: dict[Side, frozenset[str]] = {
    # Who answered stands for an LLM there, and is a group like others.
    "answers": frozenset({"text_id", "question", "option", "probability", "answer", "ordinal", "source"}),
    "judgments": frozenset({"text_id", "question", "option", "probability", "judge", "answer", "asks"}),
}


def recognises(fields: Mapping[str, Any], side: Side) -> bool:
    """Return whether all columns are there."""
    return all(column in fields for column in NEEDED[side])


def answers(rows: Sequence[Row]) -> Records:
    """Make a record for each row."""
    found = _records(rows, "answers")
    found.option = [row.fields.get("option") for row in rows]
    found.probability = [row.fields.get("probability") for row in rows]
    classes = (name(row.fields.get("question")) for row in rows if name(row.fields.get("ordinal")).lower() == "false")
    found.nominal = frozenset(classes)  # as `ask` writes it
    return found


def judgments(rows: Sequence[Row]) -> Records:
    """Make a record for each row; a row without a judge has an unknown judge."""
    found = _records(rows, "judgments")
    found.judge = [name(row.fields.get("judge")) or None for row in rows]
    found.option = [row.fields.get("answer") for row in rows]
    return found


def _records(rows: Sequence[Row], side: Side) -> Records:
    columns = [
        column for column in dict.fromkeys(key for row in rows for key in row.fields) if column not in KNOWN[side]
    ]
    return Records(
        text=[name(row.fields.get("text_id")) for row in rows],
        question=[name(row.fields.get("question")) for row in rows],
        row=list(range(len(rows))),
        rows=list(rows),
        groups={column: [name(row.fields.get(column)) for row in rows] for column in columns},
    )


SHAPE = Shape(
    name="long",
    columns={
        "answers": "text_id, question, option, probability",
        "judgments": "text_id, question, judge, answer",
    },
    recognises=recognises,
    answers=answers,
    judgments=judgments,
)
