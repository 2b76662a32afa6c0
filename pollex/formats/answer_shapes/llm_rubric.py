"""The tables that the authors of LLM-Rubric released, as they are.

Answers: a row a text and question, with the probabilities of answers 1 … 4. Judgments: a row a text and judge, with the
answers to Q0 … Q8; 0 means that the question does not apply, an empty cell that the answer is missing. DQQ0 … DQQ2 ask
about the dialogue's own quality and belong to no questionnaire. The system is a column (`dialogue_system`), or the
beginning of the id of a text (`V3_17`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pollex.formats.answer_shapes.shape import Records, Row, Shape, Side, name

PROBABILITY = re.compile(r"answer(\d+)_prob")
QUESTION = re.compile(r"Q\d+")
SYSTEM = re.compile(r"(V\d+)_")
NOMINAL = frozenset({"Q8"})
"""Is the number of exchanges right: 1 fewer would do, 2 more are needed, 3 reasonable."""
NOT_APPLICABLE = 0.0


def recognises(fields: Mapping[str, Any], side: Side) -> bool:
    """Return whether the columns are those of LLM-Rubric."""
    if side == "answers":
        return {"text_id", "criterion"} <= fields.keys() and any(map(PROBABILITY.fullmatch, fields))
    return {"text_id", "annotator_id"} <= fields.keys() and any(map(QUESTION.fullmatch, fields))


def answers(rows: Sequence[Row]) -> Records:
    """Make a record for each row and option.

    An option that is 0 in all rows of a question does not belong to that question.
    """
    options = {column: found[1] for column in rows[0].fields if (found := PROBABILITY.fullmatch(column))}
    questions = [name(row.fields.get("criterion")) for row in rows]
    used = {
        (question, column)
        for question, row in zip(questions, rows, strict=True)
        for column in options
        if _number(row.fields.get(column)) != 0
    }
    cells = [
        (number, column)
        for number, question in enumerate(questions)
        for column in options
        if (question, column) in used
    ]
    return Records(
        text=[name(rows[number].fields.get("text_id")) for number, _ in cells],
        question=[questions[number] for number, _ in cells],
        option=[options[column] for _, column in cells],
        probability=[rows[number].fields.get(column) for number, column in cells],
        row=[number for number, _ in cells],
        rows=list(rows),
        groups={"system": _systems(rows)},
        nominal=NOMINAL & set(questions),
    )


def judgments(rows: Sequence[Row]) -> Records:
    """Make a record for each row and applicable question."""
    columns = [column for column in rows[0].fields if QUESTION.fullmatch(column)]
    cells = list(_cells(rows, columns))
    given = [(number, column, value) for number, column, value in cells if value != ""]
    return Records(
        text=[name(rows[number].fields.get("text_id")) for number, *_ in given],
        question=[column for _, column, _ in given],
        judge=[name(rows[number].fields.get("annotator_id")) or None for number, *_ in given],
        option=[value for *_, value in given],
        row=[number for number, *_ in given],
        rows=list(rows),
        groups={"system": _systems(rows)},
        nominal=NOMINAL & set(columns),
        blank=sorted({number for number, _, value in cells if value == ""}),
    )


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield row, question and text of each answered cell, without those that don't apply."""
    for number, row in enumerate(rows):
        for column in columns:
            value = name(row.fields.get(column))
            if _number(value) != NOT_APPLICABLE:
                yield number, column, value


def _systems(rows: Sequence[Row]) -> list[str]:
    return [name(row.fields.get("dialogue_system")) or _prefix(name(row.fields.get("text_id"))) for row in rows]


def _prefix(text: str) -> str:
    found = SYSTEM.match(text)
    return found[1] if found else ""


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


SHAPE = Shape(
    name="LLM-Rubric's",
    columns={
        "answers": "text_id, criterion, answer1_prob, answer2_prob …",
        "judgments": "text_id, annotator_id, Q0, Q1 …",
    },
    recognises=recognises,
    answers=answers,
    judgments=judgments,
)
