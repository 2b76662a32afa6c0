"""Sheets as tensors, and where they lie when they are laid out by judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pollex.calibration.questionnaire import Floats, Ints
from pollex.calibration.sheets import UNANSWERED, Sheets


@dataclass(frozen=True, eq=False)
class Table:
    """All sheets as tensors with one row more, of zeros, that fills the places of no sheet.

    Attributes:
        inputs: `[sheet + 1, input + 1]`, bias last.
        target: 1 at the option chosen `[sheet + 1, question × option]`.
        counts: 1 where the question was answered, likewise.
        judge: Codes from 0 `[sheet]`.
        judges: How many, with the one for nobody known where there is one.
        nobody: Whether the last judge is nobody, who has no weights of their own.
        questions: How many.
    """

    inputs: Tensor
    target: Tensor
    counts: Tensor
    judge: Ints
    judges: int
    nobody: bool
    questions: int

    def __len__(self) -> int:
        return len(self.judge)

    def only(self, question: int) -> Table:
        """The same with the answers to one question."""
        width = self.target.shape[1] // self.questions
        part = slice(question * width, (question + 1) * width)
        target, counts = self.target[:, part].contiguous(), self.counts[:, part].contiguous()
        return Table(self.inputs, target, counts, self.judge, self.judges, self.nobody, 1)


def table_of(inputs: Floats, sheets: Sheets, judges: int, options: int, dtype: torch.dtype = torch.float64) -> Table:
    """Sheets and their inputs `[sheet, input + 1]`.

    In double precision by default: where a unit is saturated, 1 − σ has no digits left in single precision, and Adam
    makes whole steps of what is rounding. Two ways to sum are then 1e-3 apart after three epochs.
    """
    answered = sheets.answer != UNANSWERED
    target = (sheets.answer[:, :, None] == np.arange(options)) & answered[:, :, None]
    counts = np.repeat(answered[:, :, None], options, axis=2)
    nobody = bool((sheets.judge < 0).any()) or not judges

    def padded(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
        rows = torch.from_numpy(array.reshape(len(array), -1).astype(np.float64)).to(dtype)
        return torch.cat([rows, rows.new_zeros((1, rows.shape[1]))])

    codes = np.where(sheets.judge < 0, judges, sheets.judge)
    return Table(padded(inputs), padded(target), padded(counts), codes, judges + nobody, nobody, sheets.answer.shape[1])


@dataclass(frozen=True, eq=False)
class Batches:
    """Some batches of sheets side by side, and where each sheet lies when they are laid out by judge.

    Attributes:
        sheets: Numbers `[batch × sheet]`.
        place: Of each sheet among the padded rows `[batch × sheet]`.
        padded: Number of the sheet at each padded row `[batch × judge × row]`; the row of zeros where there is none.
        count: Of batches.
    """

    sheets: Tensor
    place: Tensor
    padded: Tensor
    count: int

    def repeated(self, networks: int) -> Tensor:
        """Places for so many networks that take the batches in turn `[network × sheet]`."""
        times, size = networks // self.count, len(self.padded)
        return (self.place + torch.arange(times)[:, None] * size).view(-1)


def batches_of(table: Table, sheets: Ints) -> Batches:
    """Lays out sheets by their numbers `[batch, sheet]`; the batches have the same size."""
    codes = table.judge[sheets]
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    counts = (ordered[:, :, None] == np.arange(table.judges)).sum(axis=1)
    starts = np.cumsum(counts, axis=1) - counts
    row = np.empty_like(codes)
    np.put_along_axis(row, order, np.arange(sheets.shape[1]) - np.take_along_axis(starts, ordered, axis=1), axis=1)
    rows = int(counts.max())
    place = (np.arange(len(sheets))[:, None] * table.judges + codes) * rows + row
    padded = np.full(len(sheets) * table.judges * rows, len(table))
    padded[place] = sheets
    numbers = [torch.from_numpy(array.reshape(-1)) for array in (sheets, place, padded)]
    return Batches(numbers[0], numbers[1], numbers[2], len(sheets))
