"""Scores as rows of a file, one a conversation: its answers as a list, in CSV as a column a rubric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pollex.formats.write import rows_out
from pollex.rubrics.answers import NEUTRAL, Answer, Unanswered
from pollex.rubrics.netsat import Score, value_of
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet

COLUMNS = {
    "id": "VARCHAR",
    "netsat": "DOUBLE",
    "label": "VARCHAR",
    "confident": "BOOLEAN",
    "probability": "DOUBLE",
    "entropy": "DOUBLE",
    "outcome": "VARCHAR",
    "judge": "VARCHAR",
    "answers": """STRUCT(rubric VARCHAR, polarity VARCHAR, option VARCHAR, value DOUBLE, probabilities DOUBLE[],
        source VARCHAR, justification VARCHAR, turns INTEGER[], outcome VARCHAR, detail VARCHAR, judge VARCHAR)[]""",
    "guaranteed": "BOOLEAN",
    "decision": "VARCHAR",
    "differs": "VARCHAR",
}
"""Fields with DuckDB's types. New ones come last, so that no column moves."""


def column_of(judge: str) -> str:
    """Name the column with a judge's probability."""
    return f"probability_{judge}"


def write_scores(
    path: Path,
    scores: Iterable[Score],
    rubrics: RubricSet,
    judges: Sequence[str] = (),
    other: RubricSet | None = None,
    *,
    wide: bool = False,
) -> None:
    """Write one row a conversation, in the format that the name ends in.

    Args:
        judges: Those whose probabilities have columns.
        other: The set whose model was asked about some of them.
        wide: Whether each rubric's value has a column of its own, named by its id. CSV has those always, and in place
            of the answers: a cell holds no list.
    """
    with scores_out(path, rubrics, judges, other, wide=wide) as put:
        put(scores)


@contextmanager
def scores_out(
    path: Path,
    rubrics: RubricSet,
    judges: Sequence[str] = (),
    other: RubricSet | None = None,
    *,
    wide: bool = False,
) -> Iterator[Callable[[Iterable[Score]], None]]:
    """Open a file for scores that come in batches; see `write_scores`."""
    columns = COLUMNS | {column_of(judge): "DOUBLE" for judge in judges} | _rating_columns(rubrics, judges)
    own: dict[str, str] = {}
    if wide or path.suffix == ".csv":
        own = {wide_column_of(rubric.id): "DOUBLE" for one in (rubrics, other) if one for rubric in one.rubrics}
    if path.suffix == ".csv":
        del columns["answers"]
    with rows_out(path, columns | own) as put:

        def write(scores: Iterable[Score]) -> None:
            made, unasked = rows(scores, rubrics, judges, other), dict.fromkeys(own)
            put(unasked | row | widened(row) for row in made)

        yield write


def wide_column_of(rubric: str) -> str:
    """Name the column with a rubric's value."""
    return f"rubric_{rubric}"


def widened(row: dict[str, Any]) -> dict[str, Any]:
    """Turn the answers of a row into a column a rubric; None where one is unanswered."""
    return {wide_column_of(answer["rubric"]): answer.get("value") for answer in row["answers"]}


def rows(
    scores: Iterable[Score], rubrics: RubricSet, judges: Sequence[str] = (), other: RubricSet | None = None
) -> Iterator[dict[str, Any]]:
    """Turn scores into plain values; None where a conversation has no figure."""
    polarities = {rubric.id: rubric.polarity for one in (other or rubrics, rubrics) for rubric in one.rubrics}
    for score in scores:
        used = rubrics if other is None or not answered_by(other, score) else other
        yield {
            "id": score.conversation_id,
            "netsat": score.netsat,
            "label": score.label,
            "confident": score.confident,
            "probability": score.probability,
            "entropy": score.entropy,
            "outcome": score.outcome,
            "judge": used.judge.name,
            "answers": [answer_row(answer, polarities[answer.question_id], used) for answer in score.answers],
            "guaranteed": score.guaranteed,
            "decision": score.decision,
            "differs": score.differs or None,
            **{column_of(judge): score.judges.get(judge) for judge in judges},
            **_rating(score, rubrics, judges),
        }


def _rating_columns(rubrics: RubricSet, judges: Sequence[str]) -> dict[str, str]:
    """Columns of a set that has learned grades: the expected one, each one's probability, each annotator's."""
    if rubrics.calibrator is None or (record := rubrics.calibrator.rating) is None:
        return {}
    grades = [f"rating_{value:g}" for value in record.scales[record.question]]
    return dict.fromkeys(["rating", *grades, *(f"rating_by_{judge}" for judge in judges)], "DOUBLE")


def _rating(score: Score, rubrics: RubricSet, judges: Sequence[str]) -> dict[str, float | None]:
    found: dict[str, float | None] = dict.fromkeys(_rating_columns(rubrics, judges))
    if found and score.rating is not None:
        found |= {"rating": score.rating} | {f"rating_{grade}": p for grade, p in score.grades.items()}
        found |= {f"rating_by_{judge}": value for judge, value in score.judge_ratings.items()}
    return found


def answered_by(rubrics: RubricSet, score: Score) -> bool:
    """Tell whether the model of a set was asked for a score."""
    return any(answer.judge.startswith(f"{rubrics.judge.name} ") for answer in score.answers)


def answer_row(answer: Answer | Unanswered, polarity: Polarity, rubrics: RubricSet) -> dict[str, Any]:
    """Turn one rubric's answer, or the reason for none, into plain values."""
    row: dict[str, Any] = {"rubric": answer.question_id, "polarity": polarity, "judge": answer.judge}
    if isinstance(answer, Unanswered):
        return row | {"outcome": answer.outcome, "detail": answer.detail}
    return row | {
        "option": answer.word,
        "value": value_in(answer, rubrics),
        "probabilities": list(answer.probabilities),
        "source": answer.source,
        "justification": answer.justification,
        "turns": list(answer.turns),
        "outcome": "answered",
    }


def value_in(answer: Answer, rubrics: RubricSet) -> float:
    """Return what an answer counts as in a set's NetSAT, before its sign."""
    return value_of(answer, rubrics.judge.options.value, rubrics.never.get(answer.question_id, NEUTRAL))
