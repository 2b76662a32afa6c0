"""What people said: any irregular collection of (row, question, judge, answer)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.calibration.questionnaire import Bools, Ints, Questionnaire
from pollex.errors import WrongUse

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
        """Those that `keep` picks; rows, questions and judges keep their numbers."""
        return Judgments(self.row[keep], self.question[keep], self.judge[keep], self.answer[keep], self.judges)

    def of_question(self, question: int) -> Judgments:
        """Those of one question."""
        return self.where(self.question == question)

    def of_rows(self, rows: npt.NDArray[Any]) -> Judgments:
        """Those of the rows given, as a mask `[row]` or as numbers; rows keep their numbers."""
        return self.where(rows[self.row] if rows.dtype == bool else np.isin(self.row, rows))

    def names(self) -> npt.NDArray[np.object_]:
        """Who gave each: name, or None."""
        known = np.array([*self.judges, None], dtype=object)
        return known[self.judge]

    def coded(self, judges: Sequence[str]) -> Judgments:
        """The same with codes for other names; judges not among them become nobody."""
        codes = codes_of(self.names(), judges)
        return Judgments(self.row, self.question, codes, self.answer, tuple(judges))


def codes_of(names: Iterable[Any], judges: Sequence[str]) -> Ints:
    """Places of names in `judges` `[name]`; −1 for None and for strangers."""
    places = {name: place for place, name in enumerate(judges)}
    return np.array([NOBODY if n is None else places.get(str(n), NOBODY) for n in names], dtype=np.int64)


def judgments(
    y: Any, judges: Sequence[Any] | None = None, questions: Questionnaire | None = None, rows: int | None = None
) -> Judgments:
    """People's answers in any of the shapes that they come in.

    Args:
        y: `Judgments`; or tuples (row, question id, judge, answer value); or values of answers to the main question
            `[row]`; or `[row, question]` with NaN where a question was not answered. Values are the scales' (1 … 4,
            not places).
        judges: Who judged each row `[row]`, for the two array shapes; None: nobody known. For the others, the order of
            the judges' codes; None: sorted by name.
        questions: Needed for everything but `Judgments`.
        rows: How many rows X has; checked when given.

    Raises:
        WrongUse: An answer that its question does not allow, an unknown question, a row that isn't there; says how
            many and which is the first.
    """
    if isinstance(y, Judgments):
        found = y if judges is None else y.coded([str(judge) for judge in judges])
    else:
        if questions is None:
            raise WrongUse("judgments without a questionnaire", remedy="give `questions`")
        found = _of_records(_records(y, judges, questions), questions)
    if questions is not None:
        _require_places(found, questions)
    if rows is not None and len(found) and not (found.row.min() >= 0 and found.row.max() < rows):
        strangers = (found.row < 0) | (found.row >= rows)
        raise WrongUse(
            f"{int(strangers.sum())} judgments are of rows that X, with {rows}, doesn't have",
            where=f"row {int(found.row[np.argmax(strangers)])}",
            remedy="count rows from 0",
        )
    return found


def _require_places(found: Judgments, questions: Questionnaire) -> None:
    """Refuses codes that stand for nothing: an array of them may come from anywhere.

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
                f"{int(wrong.sum())} judgments have places of {what} that there are not",
                where=f"judgment {int(np.argmax(wrong))}",
                remedy="count places from 0, or give tuples of names and values",
            )


def _records(y: Any, judges: Sequence[Any] | None, questions: Questionnaire) -> list[tuple[int, str, Any, float]]:
    """Tuples (row, question id, judge, value) from any shape."""
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple)) and len(y[0]) == 4:
        return [(int(row), str(question), judge, float(value)) for row, question, judge, value in y]
    array = np.asarray(y, dtype=np.float64)
    names = [questions.main] if array.ndim == 1 else [scale.question for scale in questions.scales]
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[1] != len(names):
        raise WrongUse(f"judgments of shape {array.shape}", remedy=f"give [row], or [row, {len(questions.scales)}]")
    who = [None] * len(table) if judges is None else list(judges)
    if len(who) != len(table):
        raise WrongUse(f"{len(who)} judges for {len(table)} rows", remedy="give one judge a row")
    return [
        (row, names[column], who[row], float(table[row, column]))
        for row, column in zip(*np.nonzero(~np.isnan(table)), strict=True)
    ]


def _of_records(records: Sequence[tuple[int, str, Any, float]], questions: Questionnaire) -> Judgments:
    places = {scale.question: number for number, scale in enumerate(questions.scales)}
    options = [{value: place for place, value in enumerate(scale.values)} for scale in questions.scales]
    if strangers := [record for record in records if record[1] not in places]:
        raise WrongUse(
            f"{len(strangers)} judgments are of unknown questions",
            where=repr(strangers[0][1]),
            remedy=f"the questionnaire has {', '.join(places)}",
        )
    if wrong := [record for record in records if record[3] not in options[places[record[1]]]]:
        row, question, _, value = wrong[0]
        raise WrongUse(
            f"{len(wrong)} answers are none that their question allows",
            where=f"row {row}, question {question!r}: {value:g}",
            remedy=f"it allows {', '.join(f'{v:g}' for v in options[places[question]])}",
        )
    names = sorted({str(judge) for _, _, judge, _ in records if judge is not None})
    return Judgments(
        row=np.array([row for row, *_ in records], dtype=np.int64),
        question=np.array([places[question] for _, question, *_ in records], dtype=np.int64),
        judge=codes_of([judge for *_, judge, _ in records], names),
        answer=np.array([options[places[question]][value] for _, question, _, value in records], dtype=np.int64),
        judges=tuple(names),
    )
