"""Simulated dialogues as `pollex simulate` writes them: the model's answers about each, as a table of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.formats.answer_shapes.shape import Records, Row, Shape, Side, name

OPTIONS = {"no": 0, "yes": 1}
GROUPS = ("system", "topic", "persona")


def recognises(fields: Mapping[str, Any], side: Side) -> bool:
    """Return whether the row is a dialogue; people's judgments of dialogues are a table of their own."""
    return side == "answers" and {"id", "messages", "quality"} <= fields.keys()


def answers(rows: Sequence[Row]) -> Records:
    """Make a record for each question and option; the option that was chosen has all the probability."""
    cells = [
        (number, question, option, said)
        for number, row in enumerate(rows)
        for question, said in (row.fields["quality"] or {}).items()
        for option in OPTIONS
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[question for _, question, *_ in cells],
        option=[OPTIONS[option] for *_, option, _ in cells],
        probability=[float(said == option) for *_, option, said in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
        groups={column: [name(row.fields.get(column)) for row in rows] for column in GROUPS},
    )


SHAPE = Shape(
    name="simulated dialogues",
    columns={"answers": "id, messages, quality"},
    recognises=recognises,
    answers=answers,
)
