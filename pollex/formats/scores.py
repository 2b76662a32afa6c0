"""Scores as rows of a file, one a conversation: its answers as a list, in CSV as a column a rubric."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pollex.formats.write import (
    format_list_as_sql,
    open_array_file,
    open_row_file,
    replace_lone_surrogates,
)
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer, Unanswered
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import AnswerColumns, Score, ScoreColumns, compute_answer_value
from pollex.store.columns import ColumnArrays, make_column_arrays
from pollex.text import JsonDict, JsonObject

ANSWER_FIELD_TYPES = {
    "rubric": "VARCHAR",
    "polarity": "VARCHAR",
    "option": "VARCHAR",
    "value": "DOUBLE",
    "probabilities": "DOUBLE[]",
    "source": "VARCHAR",
    "justification": "VARCHAR",
    "turns": "INTEGER[]",
    "outcome": "VARCHAR",
    "detail": "VARCHAR",
    "judge": "VARCHAR",
}
SCORE_COLUMN_TYPES = {
    "id": "VARCHAR",
    "netsat": "DOUBLE",
    "label": "VARCHAR",
    "confident": "BOOLEAN",
    "probability": "DOUBLE",
    "entropy": "DOUBLE",
    "outcome": "VARCHAR",
    "judge": "VARCHAR",
    "answers": f"STRUCT({', '.join(f'{name} {type_}' for name, type_ in ANSWER_FIELD_TYPES.items())})[]",
    "guaranteed": "BOOLEAN",
    "decision": "VARCHAR",
    "differs": "VARCHAR",
}
"""Fields with DuckDB's types. New ones come last, so that no column moves."""


def make_judge_column_name(judge: str) -> str:
    """Name the column with a judge's probability."""
    return f"probability_{judge}"


@contextmanager
def open_score_file(
    path: Path,
    rubrics: RubricSet,
    judges: Sequence[str] = (),
    other: RubricSet | None = None,
    *,
    wide: bool = False,
) -> Iterator[Callable[[ScoreColumns], None]]:
    """Open a file of one row a conversation, in the format that the name ends in, for scores that come in batches.

    Args:
        judges: Those whose probabilities have columns.
        other: The set whose model was asked about some of them.
        wide: Whether each rubric's value has a column of its own, named by its id. CSV has those
            always, and in place of the answers: a cell holds no list.
    """
    columns = (
        SCORE_COLUMN_TYPES
        | {make_judge_column_name(judge): "DOUBLE" for judge in judges}
        | _make_rating_column_types(rubrics, judges)
    )
    if wide or path.suffix == ".csv":
        rubric_ids = []
        for rubric_set in (rubrics, other):
            if rubric_set:
                for rubric in rubric_set.rubrics:
                    rubric_ids.append(rubric.id)

        columns |= {make_rubric_column_name(rubric): "DOUBLE" for rubric in rubric_ids}

    if path.suffix == ".csv":
        del columns["answers"]

    # CSV and JSON lines are written row by row, Parquet from arrays
    if path.suffix != ".parquet":
        with open_row_file(path, columns) as put:
            yield lambda scores: put(iterate_score_rows(scores, rubrics, judges, other, wide=True))
        return

    with open_array_file(path, columns) as put_arrays:
        yield (
            lambda scores: (
                put_arrays(*_make_score_arrays(scores, columns, rubrics, judges, other))
                if scores
                else None
            )
        )


def _make_score_arrays(
    scores: ScoreColumns,
    columns: Mapping[str, str],
    rubrics: RubricSet,
    judges: Sequence[str],
    other: RubricSet | None,
) -> tuple[dict[str, ColumnArrays], str]:
    """Return scores as arrays, and the query that gives their rows: each different answer is made once."""
    plain = {name: type_ for name, type_ in columns.items() if name != "answers"}
    answers = _make_answer_rows(scores.answers, rubrics, other)
    values = _make_score_columns(scores, rubrics, judges, other, answers)
    about, sql = make_column_arrays(
        plain,
        list(zip(*(map(replace_lone_surrogates, values[name]) for name in plain), strict=True)),
    )
    structs = []
    for answer in answers:
        structs.append(tuple(map(replace_lone_surrogates, map(answer.get, ANSWER_FIELD_TYPES))))

    different, every = format_list_as_sql(ANSWER_FIELD_TYPES, structs)
    # places count from 1 in SQL; 0 is an answer that wasn't asked
    about |= {f"_{place}": column + 1 for place, column in enumerate(scores.answers.index.T)}
    index = ", ".join(f"r._{place}" for place in range(scores.answers.index.shape[1]))
    if (scores.answers.index < 0).any():
        places = f"list_filter([{index}], one -> one > 0)"
    else:
        places = f"[{index}]"

    lists = {"answers": f"list_select({every.format('different')}, {places}::BIGINT[])"}
    query = f"SELECT {', '.join((sql | lists)[name] for name in columns)} FROM about AS r"  # noqa: S608 - our own names
    return {"about": about, "different": different}, query


def make_rubric_column_name(rubric: str) -> str:
    """Name the column with a rubric's value."""
    return f"rubric_{rubric}"


def iterate_score_rows(
    scores: ScoreColumns,
    rubrics: RubricSet,
    judges: Sequence[str] = (),
    other: RubricSet | None = None,
    *,
    wide: bool = False,
) -> Iterator[JsonDict]:
    """Turn scores into plain values; None where a conversation has no figure."""
    different = _make_answer_rows(scores.answers, rubrics, other)
    columns = _make_score_columns(
        scores,
        rubrics,
        judges,
        other,
        different if wide else None,
    )
    for index, values in zip(
        scores.answers.index.tolist(), zip(*columns.values(), strict=True), strict=True
    ):
        row = dict(zip(columns, values, strict=True))
        yield row | {"answers": [different[place] for place in index if place >= 0]}


def _make_score_columns(
    scores: ScoreColumns,
    rubrics: RubricSet,
    judges: Sequence[str],
    other: RubricSet | None,
    wide: Sequence[JsonObject] | None,
) -> dict[str, Sequence[object]]:
    judged = scores.column("judges")
    # whose model answered: that of the set, or of the other one
    whose = [rubrics.judge.name] * len(scores)
    if other is not None:
        whose = []
        for score in scores:
            whose.append(
                (other if was_score_answered_by_model_of_set(other, score) else rubrics).judge.name
            )

    # the columns that every score has
    values_by_column: dict[str, Sequence[object]] = {"id": scores.ids}
    values_by_column |= {
        name: scores.column(name)
        for name in SCORE_COLUMN_TYPES
        if name in Score.model_fields and name != "answers"
    }
    values_by_column |= {
        "judge": whose,
        "answers": whose,
        "differs": [why or None for why in scores.column("differs")],
    }
    values_by_column |= {
        make_judge_column_name(judge): [
            ratings_of_judges.get(judge) for ratings_of_judges in judged
        ]
        for judge in judges
    }
    # ratings, and a column for each grade and judge
    if ratings := _make_rating_column_types(rubrics, judges):
        score_ratings = [_make_rating_fields(score) for score in scores]
        values_by_column |= {
            name: [rating.get(name) for rating in score_ratings] for name in ratings
        }

    # each rubric's value; None where it was not asked
    if wide is not None:
        unasked = [None] * len(scores)
        values_by_column |= {
            make_rubric_column_name(rubric.id): unasked
            for rubric_set in (rubrics, other)
            if rubric_set
            for rubric in rubric_set.rubrics
        }
        # an answer that wasn't asked has the place -1: the None at the end
        values = [answer.get("value") for answer in wide] + [None]
        for rubric, places in zip(
            scores.answers.rubrics, scores.answers.index.T.tolist(), strict=True
        ):
            values_by_column[make_rubric_column_name(rubric)] = [values[place] for place in places]

    return {
        name: values_by_column[name]
        for name in [
            *SCORE_COLUMN_TYPES,
            *(name for name in values_by_column if name not in SCORE_COLUMN_TYPES),
        ]
    }


def _make_answer_rows(
    answers: AnswerColumns,
    rubrics: RubricSet,
    other: RubricSet | None,
) -> list[JsonDict]:
    # where both sets have a rubric, this set's polarity counts
    polarities = {}
    for rubric_set in (other or rubrics, rubrics):
        for rubric in rubric_set.rubrics:
            polarities[rubric.id] = rubric.polarity

    return [
        make_answer_row(
            answer,
            polarities[answer.question_id],
            other if other and _is_answer_of_judge(other, answer) else rubrics,
        )
        for answer in answers.different
    ]


def _make_rating_column_types(rubrics: RubricSet, judges: Sequence[str]) -> dict[str, str]:
    if rubrics.calibrator is None or (record := rubrics.calibrator.rating) is None:
        return {}

    grades = []
    for value in record.scales[record.question]:
        grades.append(f"rating_{value:g}")

    return dict.fromkeys(
        ["rating", *grades, *(f"rating_by_{judge}" for judge in judges)],
        "DOUBLE",
    )


def _make_rating_fields(score: Score) -> dict[str, float]:
    if score.rating is None:
        return {}

    ratings = {"rating": score.rating} | {f"rating_{grade}": p for grade, p in score.grades.items()}
    return ratings | {f"rating_by_{judge}": value for judge, value in score.judge_ratings.items()}


def was_score_answered_by_model_of_set(rubrics: RubricSet, score: Score) -> bool:
    """Tell whether the model of a set was asked for a score."""
    return any(_is_answer_of_judge(rubrics, answer) for answer in score.answers)


def _is_answer_of_judge(rubrics: RubricSet, answer: Answer | Unanswered) -> bool:
    return answer.judge.startswith(f"{rubrics.judge.name} ")


def make_answer_row(
    answer: Answer | Unanswered,
    polarity: Polarity,
    rubrics: RubricSet,
) -> JsonDict:
    """Turn one rubric's answer, or the reason for none, into plain values."""
    row: JsonDict = {
        "rubric": answer.question_id,
        "polarity": polarity,
        "judge": answer.judge,
    }
    if isinstance(answer, Unanswered):
        return row | {"outcome": answer.outcome, "detail": answer.detail}

    return row | {
        "option": answer.word,
        "value": get_answer_value(answer, rubrics),
        "probabilities": list(answer.probabilities),
        "source": answer.source,
        "justification": answer.justification,
        "turns": list(answer.turns),
        "outcome": "answered",
    }


def get_answer_value(answer: Answer, rubrics: RubricSet) -> float:
    """Return what an answer counts as in a set's NetSAT, before its sign."""
    return compute_answer_value(
        answer,
        rubrics.judge.options.value,
        rubrics.never.get(answer.question_id, MIDDLE_OPTION_VALUE),
    )
