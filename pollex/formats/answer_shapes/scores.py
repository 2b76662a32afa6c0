"""Files of `pollex score` (Parquet, JSON lines): a row a conversation, with the judge's answers to all rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.formats.answer_shapes.shape import Records, Row, Shape, Side, name
from pollex.rubrics.answers import SCALES

VALUES = {len(scale): [option.value for option in scale] for scale in SCALES.values()}


def recognises(fields: Mapping[str, Any], side: Side) -> bool:
    """Return whether the columns are those of scores."""
    return side == "answers" and fields.keys() >= {"id", "netsat", "answers"}


def answers(rows: Sequence[Row]) -> Records:
    """Make a record for each option of each rubric that was answered; one that never came up has zeros."""
    cells = [
        (number, answer["rubric"], value, probability)
        for number, row in enumerate(rows)
        for answer in row.fields["answers"] or ()
        if answer.get("outcome") == "answered"
        for value, probability in zip(VALUES[len(answer["probabilities"])], answer["probabilities"], strict=True)
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[rubric for _, rubric, _, _ in cells],
        option=[value for _, _, value, _ in cells],
        probability=[probability for *_, probability in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
    )


SHAPE = Shape(name="scores", columns={"answers": "id, netsat, answers"}, recognises=recognises, answers=answers)
