"""Judgments as filled-in sheets: what one judge answered about one text, a column a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Ints

UNANSWERED = -1
"""Stands where a judge gave no answer to a question."""


@dataclass(frozen=True, eq=False)
class Sheets:
    """One row a text and judge, in the order in which they first come in the judgments.

    Attributes:
        row: Which text, a row of X `[sheet]`.
        judge: Code of the judge `[sheet]`; −1 for nobody known.
        answer: Place of the option that was chosen `[sheet, question]`; −1: no answer.
    """

    row: Ints
    judge: Ints
    answer: Ints

    def __len__(self) -> int:
        return len(self.row)

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]] | Ints) -> Sheets:
        """Those that `keep` picks."""
        return Sheets(self.row[keep], self.judge[keep], self.answer[keep])


def sheets_of(y: Judgments, questions: Ints) -> Sheets:
    """Sheets with one column for each of the questions; judgments of others are left out.

    A second answer of the same judge (of nobody known, say) to the same question about the same text starts a second
    sheet, so that no answer is lost.
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
    return Sheets(unique[order, 0], unique[order, 1], answer)


def _times_before(y: Judgments) -> Ints:
    """How often the same judge answered the same question about the same text before `[judgment]`."""
    keys = np.stack([y.row, y.judge, y.question], axis=1)
    same = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(same, kind="stable")
    ordered = same[order]
    starts = np.searchsorted(ordered, ordered)
    before = np.empty(len(same), dtype=np.int64)
    before[order] = np.arange(len(same)) - starts
    return before
