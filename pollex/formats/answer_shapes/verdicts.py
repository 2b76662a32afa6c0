"""Files of `pollex judge` (Parquet, JSON lines): a row a conversation, with the votes of all runs on one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollex.formats.answer_shapes.shape import Records, Row, Shape, Side, name

QUESTION = "rating"


def recognises(fields: Mapping[str, Any], side: Side) -> bool:
    """Return whether the columns are those of verdicts."""
    return side == "answers" and fields.keys() >= {"id", "votes", "runs"}


def answers(rows: Sequence[Row]) -> Records:
    """Make a record for each option: the last is worth 0, the first most; runs without an answer are missing mass."""
    cells = [
        (number, place, count / row.fields["runs"])
        for number, row in enumerate(rows)
        if row.fields["runs"]
        for place, count in enumerate(reversed([*row.fields["votes"].values()]))
    ]
    return Records(
        text=[name(rows[number].fields["id"]) for number, *_ in cells],
        question=[QUESTION] * len(cells),
        option=[place for _, place, _ in cells],
        probability=[share for *_, share in cells],
        row=[number for number, *_ in cells],
        rows=list(rows),
    )


SHAPE = Shape(name="verdicts", columns={"answers": "id, votes, runs"}, recognises=recognises, answers=answers)
