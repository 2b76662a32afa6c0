"""People's judgments: any irregular collection of (row, question, judge, answer)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import Predictions

UNKNOWN_JUDGE_CODE = -1
"""Code of a judge who is not known: the shared part of a model answers for them."""


@dataclass(frozen=True, eq=False)
class Judgments:
    """People's answers as parallel arrays, each `[judgment]`.

    Attributes:
        row: Which text, a row of X.
        question: Place of the question among the questionnaire's scales.
        judge: Code of the judge, a place in `judges`; −1 for nobody known.
        answer: Place of the option that was chosen.
        judges: The judges' names.
    """

    row: Ints
    question: Ints
    judge: Ints
    answer: Ints
    judges: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.row)

    def where(self, keep: Bools | Ints) -> Judgments:
        """Return those that `keep` picks; rows, questions and judges keep their numbers."""
        return Judgments(
            self.row[keep],
            self.question[keep],
            self.judge[keep],
            self.answer[keep],
            self.judges,
        )

    def of_question(self, question: int) -> Judgments:
        """Return those of one question."""
        return self.where(self.question == question)

    @property
    def labels(self) -> int:
        """Number of labels as evidence; repeated judgments by a known judge count once."""
        # a judge who answers again says nothing new; answers of nobody known can't be compared
        has_judge = self.judge != UNKNOWN_JUDGE_CODE
        triples = np.stack([self.row, self.question, self.judge], axis=1)[has_judge]
        return len(np.unique(triples, axis=0)) + int((~has_judge).sum())

    def names(self) -> npt.NDArray[np.object_]:
        """Say who gave each: name, or None."""
        judge_names = np.array([*self.judges, None], dtype=object)
        return judge_names[self.judge]

    def coded(self, judges: Sequence[str]) -> Judgments:
        """Recode judges for other names; judges not among them become unknown."""
        # name by name, not judgment by judgment: those are many more
        codes = convert_judge_names_to_indices([*self.judges, None], judges)
        return Judgments(
            self.row,
            self.question,
            codes[self.judge],
            self.answer,
            tuple(judges),
        )


def convert_judge_names_to_indices(names: Iterable[object], judges: Sequence[str]) -> Ints:
    """Return indices of names in `judges` `[name]`; −1 for unknown names."""
    places: dict[str | None, int] = {name: place for place, name in enumerate(judges)}
    return np.array(
        [places.get(get_judge_name(n), UNKNOWN_JUDGE_CODE) for n in names], dtype=np.int64
    )


def get_judge_name(judge: Any) -> str | None:
    """Return a judge's name; None for an unknown judge: None, NaN, or empty.

    1 and 1.0 are the same name: one gap turns a column of integers into floats.
    """
    if is_missing_value(judge):
        return None

    whole = isinstance(judge, (float, np.floating)) and float(judge).is_integer()
    return str(int(judge) if whole else judge) or None


def is_missing_value(value: object) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' equivalents."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is not even unequal to itself
        return True


def list_judge_per_row(judges: Sequence[Any] | None, rows: int) -> list[Any]:
    """Return the judge of each row; None for unknown judges.

    Raises:
        WrongUse: They are not one a row, or one name alone.
    """
    if isinstance(judges, str):
        raise WrongUse(
            f"one name, {judges!r}, for {rows} rows",
            hint="give a list with one judge a row",
        )

    if judges is None:
        who = [None] * rows
    else:
        who = list(judges)

    if len(who) != rows:
        raise WrongUse(
            f"{len(who)} judges for {rows} rows",
            hint="give one judge a row, or None",
        )

    return who


def convert_judgments_to_arrays(
    y: Any,
    judges: Sequence[object] | None = None,
    questions: Questionnaire | None = None,
    rows: int | None = None,
) -> Judgments:
    """Convert people's answers, given by names and values, to arrays.

    Args:
        y: (row, question id, judge, answer value) each; or values of answers to the main question
            `[row]`, NaN where there is none; or `Judgments`, which stay as they are. Values are the
            scales' (1 … 4, not places).
        judges: Who judged each row `[row]`, of values alone; None: nobody known.
        questions: Needed for everything but `Judgments`.
        rows: How many rows X has; checked when given.

    Raises:
        WrongUse: What is no judgment or no number, an answer that its question does not allow, an
            unknown question, a row that isn't there; says how many and which is the first.
    """
    if isinstance(y, Judgments):
        labels = y
    elif questions is None:
        raise WrongUse("judgments without a questionnaire", hint="give `questions`")
    else:
        # tuples name their row and question; plain values are answers to the main question
        if isinstance(y, np.ndarray):
            entries = y.tolist()
        else:
            entries = list(y)

        are_tuples = not entries or any(isinstance(entry, (list, tuple)) for entry in entries)
        if are_tuples:
            records = _check_judgment_records(entries, judges)
        else:
            records = _make_records_of_main_question(entries, judges, questions, rows)

        labels = _convert_records_to_arrays(records, questions)

    # X may have fewer rows than the judgments speak of
    if rows is not None and len(labels) and not (labels.row.min() >= 0 and labels.row.max() < rows):
        strangers = (labels.row < 0) | (labels.row >= rows)
        raise WrongUse(
            f"judgments of rows that X, with {rows}, doesn't have: {int(strangers.sum())} of {len(labels)}",
            where=f"row {int(labels.row[np.argmax(strangers)])}",
            hint="count rows from 0",
        )

    return labels


JudgmentRecord = tuple[int, str, object, float | str]
"""Row, question id, judge, and value, as it was said where it is no number."""


def _make_records_of_main_question(
    values: Sequence[object],
    judges: Sequence[object] | None,
    questions: Questionnaire,
    rows: int | None,
) -> list[JudgmentRecord]:
    if rows is not None and len(values) != rows:
        hint = "give one a row, NaN where there is none"
        raise WrongUse(f"answers for {len(values)} rows, X has {rows}", hint=hint)

    who = list_judge_per_row(judges, len(values))
    records: list[JudgmentRecord] = []
    for row, value in enumerate(values):
        if not is_missing_value(value):
            records.append((row, questions.main, who[row], _parse_answer_value(value)))

    return records


def _check_judgment_records(
    entries: Sequence[Any], judges: Sequence[object] | None
) -> list[JudgmentRecord]:
    if judges is not None:
        raise WrongUse(
            "judges beside judgments that name their own",
            hint="leave out `judges`",
        )

    odd = []
    for entry in entries:
        if not (isinstance(entry, (list, tuple)) and len(entry) == 4):
            odd.append(entry)

    _raise_error_for_odd_records(
        odd,
        entries,
        "that are no (row, question, judge, answer)",
        "give these four each",
    )
    # 3, "3" and 3.0 are the same row
    odd = []
    for entry in entries:
        if not str(entry[0]).removesuffix(".0").removeprefix("-").isdecimal():
            odd.append(entry)

    _raise_error_for_odd_records(
        odd,
        entries,
        "of rows that are no whole numbers",
        "give the text's place in X, counted from 0",
    )
    records: list[JudgmentRecord] = []
    for row, question, judge, value in entries:
        records.append((int(float(row)), str(question), judge, _parse_answer_value(value)))

    return records


def _raise_error_for_odd_records(
    odd: Sequence[object],
    entries: Sequence[object],
    what: str,
    hint: str,
) -> None:
    if odd:
        where = f"judgment {entries.index(odd[0])}, {odd[0]!r}"
        raise WrongUse(
            f"judgments {what}: {len(odd)} of {len(entries)}",
            where=where,
            hint=hint,
        )


def _parse_answer_value(answer: Any) -> float | str:
    try:
        if is_missing_value(answer):
            return np.nan
        return float(answer)
    except (TypeError, ValueError):
        return str(answer)


def _convert_records_to_arrays(
    records: Sequence[JudgmentRecord], questions: Questionnaire
) -> Judgments:
    # place of each question, and of each value among its question's options
    places = {scale.question: number for number, scale in enumerate(questions.scales)}
    options: list[dict[float | str, int]] = []
    for scale in questions.scales:
        options.append({value: place for place, value in enumerate(scale.values)})

    # refuse questions and answers that the questionnaire doesn't have
    if strangers := [record for record in records if record[1] not in places]:
        raise WrongUse(
            f"judgments of unknown questions: {len(strangers)} of {len(records)}",
            where=repr(strangers[0][1]),
            hint=f"the questionnaire has {', '.join(places)}",
        )

    if wrong := [record for record in records if record[3] not in options[places[record[1]]]]:
        row, question, _, value = wrong[0]
        raise WrongUse(
            f"answers that their question doesn't allow: {len(wrong)} of {len(records)}",
            where=f"row {row}, question {question!r}: {value if isinstance(value, str) else f'{value:g}'}",
            hint=f"it allows {', '.join(f'{v:g}' for v in options[places[question]])}",
        )

    # names become codes, in alphabetical order
    judge_names = set()
    for _, _, judge, _ in records:
        if (name := get_judge_name(judge)) is not None:
            judge_names.add(name)

    names = sorted(judge_names)
    return Judgments(
        row=np.array([row for row, *_ in records], dtype=np.int64),
        question=np.array([places[question] for _, question, *_ in records], dtype=np.int64),
        judge=convert_judge_names_to_indices([judge for *_, judge, _ in records], names),
        answer=np.array(
            [options[places[question]][value] for _, question, _, value in records], dtype=np.int64
        ),
        judges=tuple(names),
    )


def pair_predictions_with_judgments(
    proba: Floats,
    labels: Judgments,
    scale: Scale,
) -> Predictions:
    """Pair predictions `[judgment, option]` with judgments of one question, in their order."""
    return Predictions(
        proba,
        labels.answer,
        labels.row,
        scale.values,
        scale.ordinal,
    )


UNANSWERED_CODE = -1
"""Stands where a judge gave no answer to a question."""


@dataclass(frozen=True, eq=False)
class AnswerMatrix:
    """One row for each text and judge, in order of first judgment.

    Attributes:
        row: Which text, a row of X `[sheet]`.
        judge: Code of the judge `[sheet]`; −1 if unknown.
        answer: Index of the option that was chosen `[sheet, question]`; −1: no answer.
    """

    row: Ints
    judge: Ints
    answer: Ints

    def __len__(self) -> int:
        return len(self.row)

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]] | Ints) -> AnswerMatrix:
        """Return those that `keep` picks."""
        return AnswerMatrix(
            self.row[keep],
            self.judge[keep],
            self.answer[keep],
        )


def make_answer_matrix(y: Judgments, questions: Ints) -> AnswerMatrix:
    """Make a matrix with one column for each of the questions; drop other judgments.

    A second answer of the same (or an unknown) judge to the same question about the same text
    starts a second sheet, so that no answer is lost.
    """
    # column of each question in the matrix, −1 for those dropped
    column = np.full(max([*questions, *y.question, -1]) + 1, UNANSWERED_CODE)
    column[questions] = np.arange(len(questions))
    in_matrix = y.where(column[y.question] >= 0)
    # one sheet for each row, judge and repetition, in the order in which they first come
    keys = np.stack(
        [in_matrix.row, in_matrix.judge, _count_earlier_answers(in_matrix)],
        axis=1,
    )
    unique, first, sheet = np.unique(
        keys,
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    order = np.argsort(first)
    place = np.argsort(order)[sheet.reshape(-1)]
    answer = np.full((len(unique), len(questions)), UNANSWERED_CODE)
    answer[place, column[in_matrix.question]] = in_matrix.answer

    return AnswerMatrix(unique[order, 0], unique[order, 1], answer)


def _count_earlier_answers(y: Judgments) -> Ints:
    """Count earlier answers of the same judge to the same question and text `[judgment]`."""
    # number of each (row, judge, question) `[judgment]`
    keys = np.stack([y.row, y.judge, y.question], axis=1)
    same = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    # place within the judgments of the same three: place in the order less that of their first
    order = np.argsort(same, kind="stable")
    ordered = same[order]
    starts = np.searchsorted(ordered, ordered)
    before = np.empty(len(same), dtype=np.int64)
    before[order] = np.arange(len(same)) - starts

    return before
