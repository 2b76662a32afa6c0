"""Scores as a file: Parquet, JSON lines or CSV, one row a conversation. A file appears whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from pollex.errors import WrongUse
from pollex.formats.csv_rows import guarded
from pollex.formats.write import Source, draft_of, require_writable, write_parquet_of
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.netsat import Score, value_of
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet


class Export(Protocol):
    """Writes scores; `judges` are those whose probabilities have columns."""

    def __call__(
        self, path: Path, scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = (), /
    ) -> None: ...


FIELDS = ("id", "netsat", "label", "confident", "probability", "entropy", "outcome", "judge", "answers", "guaranteed")
"""New ones come last, so that no column moves."""

PARQUET_COLUMNS = {
    **dict.fromkeys(("id", "label", "outcome", "judge"), "VARCHAR"),
    **dict.fromkeys(("netsat", "probability", "entropy"), "DOUBLE"),
    **dict.fromkeys(("confident", "guaranteed"), "BOOLEAN"),
    "answers": """STRUCT(rubric VARCHAR, polarity VARCHAR, option VARCHAR, value DOUBLE, probabilities DOUBLE[],
        source VARCHAR, justification VARCHAR, turns INTEGER[], outcome VARCHAR, detail VARCHAR)[]""",
}


def exporter_for(path: Path, *read: Source, judges: Sequence[str] = ()) -> Export:
    """What writes the format that the name ends in.

    Args:
        read: What the command reads.
        judges: Those whose probabilities will have columns.

    Raises:
        WrongUse: It ends in none that is known, can't or may not be written there, or can't hold the columns.
    """
    formats: dict[str, Export] = {".parquet": write_parquet, ".jsonl": write_jsonl, ".csv": write_csv}
    if path.suffix not in formats:
        raise WrongUse(
            f"no format ends in {path.suffix or 'nothing'!r}", where=str(path), remedy=f"use {', '.join(formats)}"
        )
    if path.suffix == ".parquet":
        _require_distinct(judges)
    require_writable(path, *read)
    path.parent.mkdir(parents=True, exist_ok=True)
    return formats[path.suffix]


def _require_distinct(judges: Sequence[str]) -> None:
    """Refuses judges who would share a column: what reads Parquet doesn't tell upper case from lower."""
    known: dict[str, str] = {}
    for judge in judges:
        if (other := known.setdefault(judge.lower(), judge)) != judge:
            what = f"the judges {other!r} and {judge!r} differ in case alone, and columns of Parquet must not"
            raise WrongUse(what, remedy="use .jsonl or .csv, or name one of them")


def column_of(judge: str) -> str:
    """The name of the column with a judge's probability."""
    return f"probability_{judge}"


def write_jsonl(path: Path, scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = ()) -> None:
    """One JSON object a line."""
    with draft_of(path) as draft, draft.open("w", encoding="utf-8") as out:
        for row in rows(scores, rubrics, judges):
            out.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")


def write_csv(path: Path, scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = ()) -> None:
    """RFC 4180; cells that a spreadsheet would run are guarded by an apostrophe; answers are JSON."""
    with draft_of(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="") as out:
        writer, fields = csv.writer(out), [*FIELDS, *map(column_of, judges)]
        writer.writerow(fields)
        for row in rows(scores, rubrics, judges):
            row["answers"] = json.dumps(row["answers"])
            writer.writerow([guarded(row[field]) for field in fields])


def write_parquet(path: Path, scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = ()) -> None:
    """Every type is given: nothing is inferred."""
    columns = {field: PARQUET_COLUMNS[field] for field in FIELDS} | {column_of(judge): "DOUBLE" for judge in judges}
    with draft_of(path) as draft:
        lines = draft.with_name(f"{draft.name}.jsonl")
        try:
            write_jsonl(lines, scores, rubrics, judges)
            write_parquet_of(lines, draft, columns)
        finally:
            lines.unlink(missing_ok=True)


def rows(scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Scores as plain values; None where a conversation has no figure."""
    polarities = {rubric.id: rubric.polarity for rubric in rubrics.rubrics}
    for score in scores:
        yield {
            "id": score.conversation_id,
            "netsat": score.netsat,
            "label": score.label,
            "confident": score.confident,
            "probability": score.probability,
            "entropy": score.entropy,
            "outcome": score.outcome,
            "judge": rubrics.judge.name,
            "answers": [answer_row(answer, polarities[answer.question_id], rubrics) for answer in score.answers],
            "guaranteed": score.guaranteed,
            **{column_of(judge): score.judges.get(judge) for judge in judges},
        }


def answer_row(answer: Answer | Unanswered, polarity: Polarity, rubrics: RubricSet) -> dict[str, Any]:
    """One rubric's answer, or why there is none."""
    row: dict[str, Any] = {"rubric": answer.question_id, "polarity": polarity}
    if isinstance(answer, Unanswered):
        return row | {"outcome": answer.outcome, "detail": answer.detail}
    return row | {
        "option": answer.scale[answer.chosen].text,
        "value": value_of(answer, rubrics.judge.value),
        "probabilities": list(answer.probabilities),
        "source": answer.source,
        "justification": answer.justification,
        "turns": list(answer.turns),
        "outcome": "answered",
    }
