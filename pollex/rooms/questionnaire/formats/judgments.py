"""Judgments as arrays from the records of a table, and the whole questionnaire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from pollex.calibration.estimator import JudgeAggregation
from pollex.calibration.judgments import (
    UNKNOWN_JUDGE_CODE,
    Judgments,
    convert_judge_names_to_indices,
)
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import (
    compute_entropy_of_distributions,
    compute_variance_of_distributions,
)
from pollex.rooms.questionnaire.formats.answer_tables import AnswerRecords, describe_place
from pollex.rooms.questionnaire.formats.answers import (
    AnswerTable,
    TableIssue,
    convert_to_numbers,
    find_groups,
    find_option_places,
    find_places_of_names,
    make_fault_issues,
    make_named_issues,
    make_natural_key,
    mask_first_of_each,
)

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator


JUDGES_COLUMN_TYPE = (
    "STRUCT(judge VARCHAR, expected DOUBLE, entropy DOUBLE, probabilities DOUBLE[])[]"
)
PREDICTION_COLUMN_TYPES = {
    "text_id": "VARCHAR",
    "question": "VARCHAR",
    "judges": JUDGES_COLUMN_TYPE,
}


def holds_predictions(path: Path) -> bool:
    """Tell whether a Parquet file has the columns of predictions."""
    import duckdb  # other formats don't need it

    with suppress(duckdb.Error), duckdb.connect() as connection:
        columns = connection.read_parquet(str(path)).columns
        return {"text_id", "question"} <= {*columns}

    return False


TrustedJudges = JudgeAggregation | Literal["unknown"]
"""How the answers of trusted judges become one, or that of an unknown judge in their place."""


def make_prediction_rows(
    model: JudgedEstimator,
    table: AnswerTable,
    judges: Sequence[str] = (),
    aggregate: TrustedJudges = "mean",
    question: str | None = None,
) -> list[dict[str, Any]]:
    """Make one row for each text: the prediction of a question for trusted judges as one, and for each named.

    Args:
        judges: Who is trusted; nobody: all seen in training.
        aggregate: How their answers become one; `unknown`: the answer of somebody unknown in their
            place.
        question: Id; None: the main one.

    Raises:
        WrongUse: The answers have no order, and so no largest and no quantile; the question was not
            learned.
    """
    scale = model.questionnaire_.scale(question)
    if aggregate not in ("mean", "unknown") and not scale.ordinal:
        what = f"the answers to {scale.question!r} have no order, so those of several judges are no one figure"
        raise WrongUse(what, hint="leave it out", option="aggregate")

    # probabilities of each judge's answers [text, option]
    proba_of_judge = {}
    for judge in judges:
        proba_of_judge[judge] = model.predict_proba(
            table.X,
            [judge] * len(table.X),
            scale.question,
        )

    # probabilities of the answers [text, option] for the trusted judges as one
    if aggregate == "unknown":
        proba = model.predict_proba(table.X, question=scale.question)
    else:
        proba = model.proba_for(table.X, list(judges) or None, scale.question)

    named = {"text_id": list(table.texts), "question": [scale.question] * len(proba)}
    columns: dict[str, list[Any]] = named | _make_prediction_columns(proba, scale)
    if aggregate not in ("mean", "unknown"):
        how = cast("JudgeAggregation", aggregate)
        columns["expected"] = model.predict_for(
            table.X, list(judges) or None, how, scale.question
        ).tolist()

    # beside them, each judge's own prediction
    if judges:
        predictions = []
        for judge, judge_proba in proba_of_judge.items():
            predictions.append(_make_judge_cells(judge, judge_proba, scale))

        columns["judges"] = [list(of_text) for of_text in zip(*predictions, strict=True)]

    rows: list[dict[str, Any]] = []
    for row in zip(*columns.values(), strict=True):
        rows.append(dict(zip(columns, row, strict=True)))

    return rows


def compute_expected_answers(proba: Floats, scale: Scale) -> list[float] | list[None]:
    """Compute expected answers; None where the answers have no order, and so no mean."""
    if not scale.ordinal:
        return [None] * len(proba)

    means: list[float] = (proba @ np.array(scale.values)).tolist()
    return means


def _make_prediction_columns(proba: Floats, scale: Scale) -> dict[str, list[object]]:
    if scale.ordinal:
        spread = compute_variance_of_distributions(proba, scale.values).tolist()
    else:
        spread = [None] * len(proba)

    return {
        "expected": compute_expected_answers(proba, scale),
        "variance": spread,
        "entropy": compute_entropy_of_distributions(proba).tolist(),
    } | {
        f"p_{value:.15g}": column.tolist()
        for value, column in zip(scale.values, proba.T, strict=True)
    }


def _make_judge_cells(judge: str, proba: Floats, scale: Scale) -> list[dict[str, object]]:
    columns = (
        compute_expected_answers(proba, scale),
        compute_entropy_of_distributions(proba).tolist(),
        proba.tolist(),
    )
    rows: list[dict[str, object]] = []
    for expected, bits, row in zip(*columns, strict=True):
        rows.append(
            {
                "judge": judge,
                "expected": expected,
                "entropy": bits,
                "probabilities": row,
            }
        )

    return rows


def list_prediction_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Name the columns of predictions, with DuckDB's types: questions may have different options."""
    names = dict.fromkeys(name for row in rows for name in row if name != "judges")
    # predictions of single judges are the last column
    ends = ["judges"] if "judges" in rows[0] else []
    columns: dict[str, str] = {}
    for name in [*names, *ends]:
        columns[name] = PREDICTION_COLUMN_TYPES.get(name, "DOUBLE")

    return columns


USUAL_MAIN_QUESTIONS = ("q0", "overall")
"""What the main question is called where nobody named it."""


@dataclass(frozen=True, eq=False)
class JudgmentTable:
    """People's judgments of the texts of a table of answers.

    Attributes:
        judgments: Rows are those of the answers' X.
        questionnaire: The questions of the answers, then those that only people answer.
        groups: By column of the table, the value of each text of the answers; empty where it has
            none.
        faults: What was left out, or is worth knowing.
    """

    judgments: Judgments
    questionnaire: Questionnaire
    groups: Mapping[str, tuple[str, ...]]
    faults: tuple[TableIssue, ...] = ()


def make_judgment_table(
    records: AnswerRecords,
    answers: AnswerTable,
    *,
    main: str | None = None,
    nominal: Collection[str] = (),
    questionnaire: Questionnaire | None = None,
) -> JudgmentTable:
    """Make judgments from records.

    Args:
        main: Id of the main question; None: the one called Q0 or overall, or the only one that
            people answered.
        nominal: Questions whose options have no order.
        questionnaire: Of a fitted calibrator; None: of the answers, and what only people answer.

    Raises:
        BadInput: No judgment is of a text that has answers.
        BadLabels: All answers to the main question are alike.
        WrongUse: No question is called so, or which is the main one has to be said.
    """
    # which judgments can be used at all: of a known text, with a number
    value = convert_to_numbers(records.option)
    row = find_places_of_names(records.text, answers.texts)
    _require_joined(records, answers, row)
    faults = _report_unreadable(records, row, value)
    usable = (row >= 0) & ~np.isnan(value)
    if not usable.any():
        why = "; ".join(map(str, faults))
        raise BadInput(
            f"no judgment can be used; {why}",
            where=records.where(0),
            hint="give answers as numbers",
        )

    # the questions with their options: those of the calibrator, or those that occur
    if questionnaire is None:
        questionnaire, odd = _build_questionnaire(
            records,
            answers,
            usable,
            value,
            main,
            nominal,
        )
    else:
        odd = _report_strangers(records, questionnaire, usable)

    faults += odd
    question = find_places_of_names(
        records.question,
        [scale.question for scale in questionnaire.scales],
    )
    answer = find_option_places(questionnaire.scales, question, value)
    of_known_question = usable & (question >= 0)
    faults += make_fault_issues(
        "judgment",
        "with an unknown option",
        of_known_question & (answer < 0),
        records.describe,
        "correct each",
    )
    keep = of_known_question & (answer >= 0)
    # judgments as arrays of places [judgment]
    judges = sorted(
        {j for j, use in zip(records.judge, keep.tolist(), strict=True) if use and j},
        key=make_natural_key,
    )
    judge = convert_judge_names_to_indices(records.judge, judges)
    judgments = Judgments(
        row[keep],
        question[keep],
        judge[keep],
        answer[keep],
        tuple(judges),
    )
    judgments, same = _keep_informative(judgments, questionnaire)
    # what is told of the records that were left out, and of judges who say little
    groups, several = find_groups(records, answers.texts)
    labels = np.bincount(
        judgments.judge[judgments.judge != UNKNOWN_JUDGE_CODE],
        minlength=len(judges),
    )
    rare = "with one label only: predicted mostly by the shared part"
    faults += [*same, *several, *_report_doubled(judgments, answers)]
    faults += make_fault_issues(
        "judge",
        rare,
        labels == 1,
        lambda judge: judges[judge],
        left_out=False,
    )
    blank = "with an empty cell where an answer should be: other answers there count"
    rows = np.array(records.blank, dtype=np.int64)
    faults += make_fault_issues(
        "row",
        blank,
        rows,
        lambda n: describe_place(records.rows[n]),
        left_out=False,
    )

    return JudgmentTable(judgments, questionnaire, groups, tuple(faults))


def _require_joined(
    records: AnswerRecords,
    answers: AnswerTable,
    row: Ints,
) -> None:
    if not (row >= 0).any():
        here = ", ".join(map(repr, list(dict.fromkeys(records.text))[:3])) or "none"
        there = ", ".join(map(repr, answers.texts[:3]))
        raise BadInput(
            f"no judgment is of a text that has answers: judged are {here}, answered {there}",
            where=records.where(0) if len(records) else "",
            hint="use the same text_id in both tables",
        )


def _report_unreadable(records: AnswerRecords, row: Ints, value: Floats) -> list[TableIssue]:
    hint = "give each text answers, or leave its judgments out"
    # a cell without an answer is told apart from one that is no number
    empty = np.array(
        [option is None or not str(option).strip() for option in records.option],
        dtype=bool,
    )
    return [
        *make_fault_issues(
            "judgment", "whose text has no answers", row < 0, records.describe, hint
        ),
        *make_fault_issues(
            "judgment",
            "whose answer is no number",
            (row >= 0) & np.isnan(value) & ~empty,
            records.describe,
            "number the answers",
        ),
        *make_fault_issues(
            "judgment", "without an answer", (row >= 0) & empty, records.describe, left_out=False
        ),
    ]


def _build_questionnaire(
    records: AnswerRecords,
    answers: AnswerTable,
    usable: Bools,
    value: Floats,
    main: str | None,
    nominal: Collection[str],
) -> tuple[Questionnaire, list[TableIssue]]:
    # questions that the judge answers, and those that only people answer
    asked_questions = {scale.question for scale in answers.scales}
    only_people = sorted(
        {name for name in records.question if name not in asked_questions},
        key=make_natural_key,
    )
    loose = frozenset(nominal) | records.nominal
    of_own = find_places_of_names(records.question, only_people)
    values = {}
    for place, name in enumerate(only_people):
        values[name] = np.unique(value[usable & (of_own == place)]).tolist()

    alike = []
    for name, answer_values in values.items():
        if len(answer_values) < 2:
            alike.append(f"{name!r} with {len(answer_values)}")

    # a question needs two different answers to be learned
    people = []
    for n, answer_values in values.items():
        if len(answer_values) > 1:
            people.append(
                Scale(
                    n,
                    tuple(answer_values),
                    n not in loose,
                    asked=False,
                )
            )

    # one scale for each, ordered unless somebody said that it is not
    scales = (
        *(
            replace(scale, ordinal=scale.ordinal and scale.question not in loose)
            for scale in answers.scales
        ),
        *people,
    )
    names = [scale.question for scale in scales]
    # a name that no question has is a slip
    if strangers := sorted(set(nominal) - set(names)):
        raise WrongUse(
            f"no question is called {strangers[0]!r}",
            hint=f"use one of {', '.join(names)}",
        )

    # the main question is one that people answered
    judged = list(
        dict.fromkeys(n for n, use in zip(records.question, usable.tolist(), strict=True) if use)
    )
    chosen = _choose_main_question(main, names, judged)
    faults = make_named_issues(
        "question",
        "that only people answer, with fewer than two answers",
        alike,
        "leave each out",
    )
    return Questionnaire(scales, chosen), faults


def _report_strangers(
    records: AnswerRecords,
    questionnaire: Questionnaire,
    usable: Bools,
) -> list[TableIssue]:
    known_questions = {scale.question for scale in questionnaire.scales}
    alien = usable & np.array(
        [name not in known_questions for name in records.question], dtype=bool
    )
    return make_fault_issues(
        "judgment",
        "whose question the questionnaire doesn't have",
        alien,
        records.describe,
    )


def _choose_main_question(
    main: str | None,
    names: Sequence[str],
    judged: Sequence[str],
) -> str:
    if main is not None:
        if main not in names:
            raise WrongUse(
                f"no question is called {main!r}",
                hint=f"give one of {', '.join(names)}",
            )

        return main

    # by its usual name, or because people answered no other
    answered = []
    for name in names:
        if name in judged:
            answered.append(name)

    candidates = []
    for main_name in USUAL_MAIN_QUESTIONS:
        for name in answered:
            if name.lower() == main_name:
                candidates.append(name)

    if not candidates and len(answered) == 1:
        candidates = answered

    if not candidates:
        raise WrongUse(
            "which question is the main one?",
            hint=f"name one of {', '.join(names)}",
            option="main",
        )

    return candidates[0]


def _keep_informative(
    judgments: Judgments, questions: Questionnaire
) -> tuple[Judgments, list[TableIssue]]:
    """Keep judgments of questions with more than one different answer.

    Raises:
        BadLabels: The main question is not among them.
    """
    # pairs of question and answer that occur [pair, 2]
    pairs = np.unique(
        np.stack([judgments.question, judgments.answer], axis=1),
        axis=0,
    )
    # number of different answers [question]
    several = np.bincount(pairs[:, 0], minlength=len(questions.scales))
    main = questions.index()
    if several[main] < 2:
        n = int((judgments.question == main).sum())
        what = f"all {n} answers to the main question {questions.main!r} are alike" if n else (
            f"nobody answered the main question {questions.main!r}"
        )  # fmt: skip
        raise BadLabels(
            what,
            hint="add judgments that differ, or name another question",
            option="main",
        )

    alone = []
    for place in np.flatnonzero(several == 1):
        alone.append(f"{questions.scales[place].question!r}")

    what = "with the same answer from everybody, which can't be learned from"
    return judgments.where(several[judgments.question] > 1), make_named_issues(
        "question", what, alone
    )


def _report_doubled(judgments: Judgments, answers: AnswerTable) -> list[TableIssue]:
    """Report judges who judged a question of a text twice: all judgments are used."""
    # nobody known can't have judged twice
    named = judgments.where(judgments.judge != UNKNOWN_JUDGE_CODE)
    keys = np.stack([named.row, named.question, named.judge], axis=1)
    # True where an earlier judgment has the same text, question and judge [judgment]
    again = np.ones(len(keys), dtype=bool)
    again[np.unique(keys, axis=0, return_index=True)[1]] = False
    extra = np.flatnonzero(again)
    # one number for each pair of text and judge, of which one case is shown
    pairs = named.row[extra] * (len(named.judges) + 1) + named.judge[extra]
    shown = extra[mask_first_of_each(pairs)]
    what = "of a text judged again by the same judge: used, and no further label"
    descriptions = {}
    for n in shown:
        descriptions[int(n)] = (
            f"{answers.texts[named.row[n]]}, judge {named.judges[named.judge[n]]}"
        )

    return make_fault_issues(
        "case",
        what,
        shown,
        descriptions.__getitem__,
        left_out=False,
    )
