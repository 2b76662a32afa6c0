"""Many calibration networks of one shape, trained at once in mini-batches.

A *stack* holds networks that differ in their fold, rate or branch. In every step each network's batch goes through the
shared weights as it is, and, padded to some places a judge, through the judges' own: one batched matrix product for all
networks and judges. The arithmetic is autograd's, in another order.

So that no column of ones has to be written beside them, a hidden layer has one unit more, whose weights are 0 but for a
bias of 100: it gives exactly 1, its slope is exactly 0, and so it stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from pollex.calibration.judgments import UNANSWERED, AnswerMatrix
from pollex.measures.arrays import Floats, Ints

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's usual settings, which the authors use too."""


@dataclass(frozen=True, eq=False)
class Penalty:
    """Coefficients of the squared norms of shared weights and judges' deltas, halved."""

    shared: float = 0.0
    own: float = 0.0


class NetworkBatch:
    """Networks with their Adam state.

    Attributes:
        weights: W1 `[network, input + 1, h1]`, W2, V, then W1a `[network, judge, input + 1, h1]`, W2a, Va.
        means: Adam's first moments.
        squares: Its second moments.
        taken: Steps so far, one number for each part.
        rates: Rate of each part; the networks are divided into parts of equal size, one for each rate.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        means: Sequence[Tensor],
        squares: Sequence[Tensor],
        taken: Sequence[int],
        rates: Sequence[float],
        penalty: Penalty,
    ) -> None:
        self.weights, self.means, self.squares = list(weights), list(means), list(squares)
        self.taken, self.rates, self.penalty = list(taken), list(rates), penalty
        self.slopes = [torch.empty_like(array) for array in self.weights]
        self._parts = [self._part(rate) for rate in dict.fromkeys(self.rates)]

    @classmethod
    def begun(cls, weights: Sequence[Tensor], rates: Sequence[float], penalty: Penalty) -> NetworkBatch:
        """Return a stack before its first step."""
        zeros = [torch.zeros_like(array) for array in weights]
        return cls(weights, zeros, [array.clone() for array in zeros], [0] * len(rates), rates, penalty)

    def __len__(self) -> int:
        return len(self.weights[0])

    def _part(self, rate: float) -> tuple[float, list[list[Tensor]]]:
        """Return views of the parts with this rate for Adam's kernel, and steps."""
        size = len(self) // len(self.rates)
        lists: list[list[Tensor]] = [[], [], [], [], []]
        for number in [place for place, other in enumerate(self.rates) if other == rate]:
            part = slice(number * size, (number + 1) * size)
            for views, arrays in zip(lists, (self.weights, self.slopes, self.means, self.squares), strict=False):
                views += [array[part] for array in arrays]
            lists[4] += [torch.tensor(float(self.taken[number])) for _ in self.weights]
        return rate, lists

    def step(self, table: Table, batches: Batches, share: float) -> None:
        """Return one step of Adam.

        Args:
            table: The sheets.
            batches: Which to learn from; the networks take them in turn.
            share: What one answer counts in the loss.
        """
        self._learn(table, batches, share)
        if table.nobody:
            for slope in self.slopes[3:]:
                slope[:, -1] = 0.0
        for rate, (weights, slopes, means, squares, taken) in self._parts:
            if self.penalty.shared or self.penalty.own:
                self._shrink(weights, slopes)
            adam(
                weights, slopes, means, squares, [], taken, fused=True, amsgrad=False, beta1=BETA1, beta2=BETA2,
                lr=rate, weight_decay=0.0, eps=EPSILON, maximize=False,
            )  # fmt: skip
        self.taken = [count + 1 for count in self.taken]

    def _learn(self, table: Table, batches: Batches, share: float) -> None:
        """Compute gradients of the loss by the chain rule, into `slopes`."""
        W1, W2, V, W1a, W2a, Va = self.weights
        s1, s2, sV, s1a, s2a, sVa = self.slopes
        lay = _Layout(batches, len(self), table.judges)
        x, own_x = lay.gathered(table.inputs)
        z1 = _layer(x, own_x, W1, W1a, lay).sigmoid_()
        own_z1 = lay.spread(z1)
        z2 = _layer(z1, own_z1, W2, W2a, lay).sigmoid_()
        own_z2 = lay.spread(z2)
        error = _softmax(_layer(z2, own_z2, V, Va, lay), table.questions)
        each = error.view(-1, len(batches.sheets), error.shape[-1])
        each.sub_(table.target[batches.sheets]).mul_(table.counts[batches.sheets] * share)
        error = _back(error, z2, own_z2, V, Va, sV, sVa, lay)
        error = _back(error, z1, own_z1, W2, W2a, s2, s2a, lay)
        _products(x, own_x, error, lay.spread(error), s1, s1a)

    def _shrink(self, weights: list[Tensor], slopes: list[Tensor]) -> None:
        for number, (weight, slope) in enumerate(zip(weights, slopes, strict=True)):
            if number % 6 < 3:
                slope[:, :-1].add_(weight[:, :-1], alpha=self.penalty.shared)
            else:
                slope.add_(weight, alpha=self.penalty.own)

    def copied(self) -> NetworkBatch:
        """Return the same networks, to train on their own."""
        arrays = [[array.clone() for array in group] for group in (self.weights, self.means, self.squares)]
        return NetworkBatch(arrays[0], arrays[1], arrays[2], self.taken, self.rates, self.penalty)

    def only(self, question: int, questions: int) -> NetworkBatch:
        """Return a copy with the head of one question, for fine-tuning."""

        def cut(arrays: Sequence[Tensor]) -> list[Tensor]:
            W1, W2, V, W1a, W2a, Va = arrays
            width = V.shape[-1] // questions
            part = slice(question * width, (question + 1) * width)
            return [array.clone() for array in (W1, W2, V[..., part], W1a, W2a, Va[..., part])]

        return NetworkBatch(cut(self.weights), cut(self.means), cut(self.squares), self.taken, self.rates, self.penalty)

    def proba(self, table: Table, batches: Batches) -> Tensor:
        """Return probabilities of the answers `[network, sheet, question × option]`; see `step`."""
        W1, W2, V, W1a, W2a, Va = self.weights
        lay = _Layout(batches, len(self), table.judges)
        z1 = _layer(*lay.gathered(table.inputs), W1, W1a, lay).sigmoid_()
        z2 = _layer(z1, lay.spread(z1), W2, W2a, lay).sigmoid_()
        return _softmax(_layer(z2, lay.spread(z2), V, Va, lay), table.questions)


def side_by_side(stacks: Sequence[NetworkBatch]) -> NetworkBatch:
    """Concatenate stacks."""
    arrays = [
        [torch.cat(same) for same in zip(*group, strict=True)]
        for group in ([s.weights for s in stacks], [s.means for s in stacks], [s.squares for s in stacks])
    ]
    taken, rates = [count for s in stacks for count in s.taken], [rate for s in stacks for rate in s.rates]
    return NetworkBatch(arrays[0], arrays[1], arrays[2], taken, rates, stacks[0].penalty)


class _Layout:
    """Rows of all networks `[network, row, column]`, and by judge `[network × judge, row, column]`."""

    def __init__(self, batches: Batches, networks: int, judges: int) -> None:
        self.batches, self.networks, self.judges = batches, networks, judges
        self.place = batches.repeated(networks)
        self.size = len(batches.padded) * (networks // batches.count)

    def gathered(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows of the table in both forms."""
        times = self.networks // self.batches.count
        plain, padded = (rows.index_select(0, numbers) for numbers in (self.batches.sheets, self.batches.padded))
        width = rows.shape[1]
        return (
            plain.repeat(times, 1).view(self.networks, -1, width),
            padded.repeat(times, 1).view(self.networks * self.judges, -1, width),
        )

    def spread(self, rows: Tensor) -> Tensor:
        """Convert the first form to the second; padding is 0."""
        width = rows.shape[2]
        out = rows.new_zeros((self.size, width))
        return out.index_copy_(0, self.place, rows.view(-1, width)).view(self.networks * self.judges, -1, width)

    def collected(self, rows: Tensor) -> Tensor:
        """Convert the second form to the first."""
        width = rows.shape[2]
        return rows.view(-1, width).index_select(0, self.place).view(self.networks, -1, width)


def _layer(rows: Tensor, own_rows: Tensor, W: Tensor, Wa: Tensor, lay: _Layout) -> Tensor:
    return torch.bmm(rows, W).add_(lay.collected(torch.bmm(own_rows, Wa.view(-1, *Wa.shape[2:]))))


def _softmax(outputs: Tensor, questions: int) -> Tensor:
    # Along the first axis it is done for many rows at once; along a last axis of four, one by one.
    rows = outputs.view(-1, outputs.shape[-1] // questions)
    return torch.softmax(rows.T.contiguous(), dim=0).T.contiguous().view_as(outputs)


def _back(
    error: Tensor, z: Tensor, own_z: Tensor, W: Tensor, Wa: Tensor, slope: Tensor, own: Tensor, lay: _Layout
) -> Tensor:
    """Compute gradients at a layer's weights into `slope` and `own`.

    Returns the gradients before the sigmoid that gave z.
    """
    own_error = lay.spread(error)
    _products(z, own_z, error, own_error, slope, own)
    back = torch.bmm(error, W.mT).add_(lay.collected(torch.bmm(own_error, Wa.view(-1, *Wa.shape[2:]).mT)))
    # (1 − σ) is exact near σ = 1, where back − back · σ would lose most of its digits.
    return back.mul_(1 - z).mul_(z)


def _products(rows: Tensor, own_rows: Tensor, error: Tensor, own_error: Tensor, slope: Tensor, own: Tensor) -> None:
    torch.bmm(rows.mT, error, out=slope)
    torch.bmm(own_rows.mT, own_error, out=own.view(-1, *own.shape[2:]))


def flat(weights: Mapping[str, Tensor]) -> list[Tensor]:
    """Convert weights by name to a stack's order and shape.

    Heads are `[…, question, h2 + 1, option]`.
    """
    heads = [torch.cat(tuple(weights[name].unbind(-3)), dim=-1) for name in ("V", "Va")]
    return [weights["W1"], weights["W2"], heads[0], weights["W1a"], weights["W2a"], heads[1]]


def with_bias_unit(weights: Sequence[Tensor]) -> list[Tensor]:
    """Add a constant unit to each hidden layer, for the next layer's bias.

    Its bias is 100, so its sigmoid is 1 and its gradient 0.
    """
    W1, W2, V, W1a, W2a, Va = weights

    def wider(W: Tensor, bias: float) -> Tensor:
        unit = torch.zeros_like(W[..., :1])
        unit[..., -1, :] = bias
        return torch.cat([W, unit], dim=-1)

    return [wider(W1, 100.0), wider(W2, 100.0), V, wider(W1a, 0.0), wider(W2a, 0.0), Va]


def without_bias_unit(weights: Sequence[Tensor]) -> list[Tensor]:
    """Return the reverse."""
    W1, W2, V, W1a, W2a, Va = weights
    return [W1[..., :-1], W2[..., :-1], V, W1a[..., :-1], W2a[..., :-1], Va]


@dataclass(frozen=True, eq=False)
class Table:
    """All sheets as tensors, with a row of zeros for padding.

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
        """Return the same with the answers to one question."""
        width = self.target.shape[1] // self.questions
        part = slice(question * width, (question + 1) * width)
        target, counts = self.target[:, part].contiguous(), self.counts[:, part].contiguous()
        return Table(self.inputs, target, counts, self.judge, self.judges, self.nobody, 1)


def table_of(
    inputs: Floats, sheets: AnswerMatrix, judges: int, options: int, dtype: torch.dtype = torch.float64
) -> Table:
    """Make the table of sheets and their inputs `[sheet, input + 1]`.

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
    """Batches of sheets side by side, with their layout by judge.

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
        """Return the places for `networks` networks that take the batches in turn `[network × sheet]`."""
        times, size = networks // self.count, len(self.padded)
        return (self.place + torch.arange(times)[:, None] * size).view(-1)


def batches_of(table: Table, sheets: Ints) -> Batches:
    """Lay out sheets by their numbers `[batch, sheet]`; batches have the same size."""
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
