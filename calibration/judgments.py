"""People's judgments: any irregular collection of (row, question, judge, answer)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import Predictions

NOBODY = -1
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
        return Judgments(self.row[keep], self.question[keep], self.judge[keep], self.answer[keep], self.judges)

    def of_question(self, question: int) -> Judgments:
        """Return those of one question."""
        return self.where(self.question == question)

    def of_rows(self, rows: npt.NDArray[Any]) -> Judgments:
        """Select judgments of these rows, given as a mask `[row]` or as numbers."""
        return self.where(rows[self.row] if rows.dtype == bool else np.isin(self.row, rows))

    @property
    def labels(self) -> int:
        """Number of labels as evidence; repeated judgments by a known judge count once."""
        known = self.judge != NOBODY
        said = np.stack([self.row, self.question, self.judge], axis=1)[known]
        return len(np.unique(said, axis=0)) + int((~known).sum())

    def names(self) -> npt.NDArray[np.object_]:
        """Say who gave each: name, or None."""
        known = np.array([*self.judges, None], dtype=object)
        return known[self.judge]

    def coded(self, judges: Sequence[str]) -> Judgments:
        """Recode judges for other names; judges not among them become unknown."""
        codes = codes_of([*self.judges, None], judges)  # name by name, not judgment by judgment: those are many more
        return Judgments(self.row, self.question, codes[self.judge], self.answer, tuple(judges))


def codes_of(names: Iterable[Any], judges: Sequence[str]) -> Ints:
    """Return indices of names in `judges` `[name]`; −1 for unknown names."""
    places: dict[str | None, int] = {name: place for place, name in enumerate(judges)}
    return np.array([places.get(name_of(n), NOBODY) for n in names], dtype=np.int64)


def name_of(judge: Any) -> str | None:
    """Return a judge's name; None for an unknown judge: None, NaN, or empty.

    1 and 1.0 are the same name: one gap turns a column of integers into floats.
    """
    if missing(judge):
        return None
    whole = isinstance(judge, (float, np.floating)) and float(judge).is_integer()
    return str(int(judge) if whole else judge) or None


def missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' equivalents."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is not even unequal to itself
        return True


def one_a_row(judges: Sequence[Any] | None, rows: int) -> list[Any]:
    """Return the judge of each row; None for unknown judges.

    Raises:
        WrongUse: They are not one a row, or one name alone.
    """
    if isinstance(judges, str):
        raise WrongUse(f"one name, {judges!r}, for {rows} rows", remedy="give a list with one judge a row")
    who = [None] * rows if judges is None else list(judges)
    if len(who) != rows:
        raise WrongUse(f"{len(who)} judges for {rows} rows", remedy="give one judge a row, or None")
    return who


def judgments(
    y: Any, judges: Sequence[Any] | None = None, questions: Questionnaire | None = None, rows: int | None = None
) -> Judgments:
    """Convert people's answers from any supported form.

    Args:
        y: `Judgments`; or any collection or table of (row, question id, judge, answer value); or values of answers to
            the main question `[row]`; or `[row, question]`. In the last two NaN stands where there is no answer.
            Values are the scales' (1 … 4, not places).
        judges: Who judged each row `[row]`, for the last two; None: nobody known. For `Judgments`, the order of the
            judges' codes; None: as they are.
        questions: Needed for everything but `Judgments`.
        rows: How many rows X has; checked when given.

    Raises:
        WrongUse: What is no judgment or no number, an answer that its question does not allow, an unknown question, a
            row that isn't there; says how many and which is the first.
    """
    if isinstance(y, Judgments):
        found = y if judges is None else y.coded([name for name in map(name_of, judges) if name is not None])
    else:
        if questions is None:
            raise WrongUse("judgments without a questionnaire", remedy="give `questions`")
        found = _of_records(_records(y, judges, questions, rows), questions)
    if questions is not None:
        _require_places(found, questions)
    if rows is not None and len(found) and not (found.row.min() >= 0 and found.row.max() < rows):
        strangers = (found.row < 0) | (found.row >= rows)
        raise WrongUse(
            f"judgments of rows that X, with {rows}, doesn't have: {int(strangers.sum())} of {len(found)}",
            where=f"row {int(found.row[np.argmax(strangers)])}",
            remedy="count rows from 0",
        )
    return found


def _require_places(found: Judgments, questions: Questionnaire) -> None:
    """Refuse codes that stand for nothing: an array of them may come from anywhere.

    Raises:
        WrongUse: Arrays of different lengths; a question, a judge or an option that there is not.
    """
    lengths = {len(found.row), len(found.question), len(found.judge), len(found.answer)}
    if len(lengths) > 1:
        raise WrongUse(f"judgments with arrays of {sorted(lengths)} entries", remedy="give each array one a judgment")
    options = np.array([len(scale.values) for scale in questions.scales], dtype=np.int64)
    stranger = (found.question < 0) | (found.question >= len(options))
    judge = (found.judge < NOBODY) | (found.judge >= len(found.judges))
    most = options[np.where(stranger, 0, found.question)]
    for what, wrong in (
        ("questions", stranger),
        ("judges", judge),
        ("options", (found.answer < 0) | (found.answer >= most)),
    ):
        if wrong.any():
            raise WrongUse(
                f"judgments with places of {what} that there are not: {int(wrong.sum())} of {len(found)}",
                where=f"judgment {int(np.argmax(wrong))}",
                remedy="count places from 0, or give tuples of names and values",
            )


Record = tuple[int, str, Any, float | str]
"""Row, question id, judge, and value, as it was said where it is no number."""


def _records(y: Any, judges: Sequence[Any] | None, questions: Questionnaire, rows: int | None) -> list[Record]:
    loose = isinstance(y, Iterable) and not isinstance(y, Sequence) and not hasattr(y, "__array__")
    # Judgments of different lengths stay as they are inside the array.
    array = np.asarray(list(y) if loose else y, dtype=object)
    if not len(array.reshape(-1)):
        return []
    if _of_tuples(array, questions):
        return _of_entries(array.tolist(), judges)
    names = [questions.main] if array.ndim == 1 else [scale.question for scale in questions.scales]
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[1] != len(names):
        raise WrongUse(
            f"judgments of shape {array.shape}",
            remedy=f"give [row], [row, {len(questions.scales)}], or (row, question, judge, answer) each",
        )
    if rows is not None and len(table) != rows:
        raise WrongUse(f"answers for {len(table)} rows, X has {rows}", remedy="give one a row, NaN where there is none")
    who = one_a_row(judges, len(table))
    return [
        (row, name, who[row], _value(value))
        for row, values in enumerate(table.tolist())
        for name, value in zip(names, values, strict=True)
        if not missing(value)
    ]


def _of_tuples(array: npt.NDArray[Any], questions: Questionnaire) -> bool:
    if array.ndim == 1:
        return any(isinstance(entry, (list, tuple)) for entry in array)
    four = array.ndim == 2 and array.shape[1] == 4
    return four and (len(questions.scales) != 4 or any(isinstance(question, str) for question in array[:, 1]))


def _of_entries(entries: Sequence[Any], judges: Sequence[Any] | None) -> list[Record]:
    if judges is not None:
        raise WrongUse("judges beside judgments that name their own", remedy="leave out `judges`")
    odd = [not (isinstance(entry, (list, tuple)) and len(entry) == 4) for entry in entries]
    _refuse(odd, entries, "that are no (row, question, judge, answer)", "give these four each")
    odd = [not str(row).removesuffix(".0").removeprefix("-").isdecimal() for row, *_ in entries]
    _refuse(odd, entries, "of rows that are no whole numbers", "give the text's place in X, counted from 0")
    return [(int(float(row)), str(question), judge, _value(value)) for row, question, judge, value in entries]


def _refuse(odd: Sequence[bool], entries: Sequence[Any], what: str, remedy: str) -> None:
    if any(odd):
        where = f"judgment {odd.index(True)}, {next(compress(entries, odd))!r}"
        raise WrongUse(f"judgments {what}: {sum(odd)} of {len(entries)}", where=where, remedy=remedy)


def _value(said: Any) -> float | str:
    try:
        return np.nan if missing(said) else float(said)
    except (TypeError, ValueError):
        return str(said)


def _of_records(records: Sequence[Record], questions: Questionnaire) -> Judgments:
    places = {scale.question: number for number, scale in enumerate(questions.scales)}
    options: list[dict[float | str, int]] = [
        {value: place for place, value in enumerate(scale.values)} for scale in questions.scales
    ]
    if strangers := [record for record in records if record[1] not in places]:
        raise WrongUse(
            f"judgments of unknown questions: {len(strangers)} of {len(records)}",
            where=repr(strangers[0][1]),
            remedy=f"the questionnaire has {', '.join(places)}",
        )
    if wrong := [record for record in records if record[3] not in options[places[record[1]]]]:
        row, question, _, value = wrong[0]
        raise WrongUse(
            f"answers that their question doesn't allow: {len(wrong)} of {len(records)}",
            where=f"row {row}, question {question!r}: {value if isinstance(value, str) else f'{value:g}'}",
            remedy=f"it allows {', '.join(f'{v:g}' for v in options[places[question]])}",
        )
    names = sorted({name for _, _, judge, _ in records if (name := name_of(judge)) is not None})
    return Judgments(
        row=np.array([row for row, *_ in records], dtype=np.int64),
        question=np.array([places[question] for _, question, *_ in records], dtype=np.int64),
        judge=codes_of([judge for *_, judge, _ in records], names),
        answer=np.array([options[places[question]][value] for _, question, _, value in records], dtype=np.int64),
        judges=tuple(names),
    )


def predictions_beside(proba: Floats, given: Judgments, scale: Scale) -> Predictions:
    """Pair predictions `[judgment, option]` with judgments of one question, in their order."""
    return Predictions(proba, given.answer, given.row, scale.values, scale.ordinal)


UNANSWERED = -1
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
        return AnswerMatrix(self.row[keep], self.judge[keep], self.answer[keep])


def answer_matrix_of(y: Judgments, questions: Ints) -> AnswerMatrix:
    """Make a matrix with one column for each of the questions; drop other judgments.

    A second answer of the same (or an unknown) judge to the same question about the same text starts a second sheet,
    so that no answer is lost.
    """
    column = np.full(max([*questions, *y.question, -1]) + 1, UNANSWERED)
    column[questions] = np.arange(len(questions))
    kept = y.where(column[y.question] >= 0)
    keys = np.stack([kept.row, kept.judge, _times_before(kept)], axis=1)
    unique, first, sheet = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)[sheet.reshape(-1)]
    answer = np.full((len(unique), len(questions)), UNANSWERED)
    answer[place, column[kept.question]] = kept.answer
    return AnswerMatrix(unique[order, 0], unique[order, 1], answer)


def _times_before(y: Judgments) -> Ints:
    """Count earlier answers of the same judge to the same question and text `[judgment]`."""
    keys = np.stack([y.row, y.judge, y.question], axis=1)
    same = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(same, kind="stable")
    ordered = same[order]
    starts = np.searchsorted(ordered, ordered)
    before = np.empty(len(same), dtype=np.int64)
    before[order] = np.arange(len(same)) - starts
    return before
