"""Networks of many settings at once: folds, rates and epochs in one go.

One pre-training trajectory is stopped at every number of epochs that is wanted, and each stop begins a branch of
fine-tuning, which is stopped in turn. So a shape, batch size and rate with six numbers of epochs for each phase, 36
settings, cost one pre-training and six fine-tunings of the longest length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pollex.calibration.network.batched import (
    Batches,
    NetworkBatch,
    Penalty,
    Table,
    batches_of,
    flat,
    side_by_side,
    with_bias_unit,
)
from pollex.calibration.network.paper_recipe import batches, initial_weights
from pollex.calibration.network.training import Heads, begun
from pollex.measures.arrays import Floats, Ints

WORKING_SET = 400_000
"""So many weights are trained at once; more would fall out of the processor's cache."""


@dataclass(frozen=True)
class SettingsGroup:
    """Settings that are trained together.

    Attributes:
        h1: Units of the first layer.
        h2: Of the second.
        batch: AnswerMatrix a step.
        rates: Of Adam.
        pretraining: Numbers of epochs, ascending.
        finetuning: Likewise.
    """

    h1: int
    h2: int
    batch: int
    rates: tuple[float, ...]
    pretraining: tuple[int, ...]
    finetuning: tuple[int, ...]

    @property
    def name(self) -> str:
        """On one line."""
        lists = {"rate": self.rates, "pretraining": self.pretraining, "finetuning": self.finetuning}
        ranges = [f"{what}={','.join(f'{value:g}' for value in values)}" for what, values in lists.items()]
        return " ".join([f"h1={self.h1} h2={self.h2} batch={self.batch}", *ranges])


@dataclass(frozen=True)
class Recipe:
    """Initial weights and loss of networks; by default the authors'.

    Attributes:
        heads: Initial heads of networks whose deltas begin at 0; None: everything is drawn as the authors draw it.
        penalty: For each sheet, on shared weights and on deltas.
        by_sheet: Whether the answers of a sheet are summed; else they, and missing ones as 0, are averaged.
    """

    heads: Heads | None = None
    penalty: Penalty = field(default_factory=Penalty)
    by_sheet: bool = False

    def begun(self, shape: tuple[int, int, int], table: Table, seed: int) -> list[Tensor]:
        """Return the initial weights of one network, in a stack's order."""
        if self.heads is None:
            heads = (table.questions, table.target.shape[1] // table.questions)
            one = flat(initial_weights(shape, heads, table.judges, seed))
        else:
            arrays = begun(shape, (table.judges, table.judges), self.heads, 1, seed).arrays()
            one = [torch.from_numpy(arrays[name][0]) for name in ("W1", "W2", "V", "W1a", "W2a", "Va")]
        return [array.to(table.inputs.dtype) for array in with_bias_unit(one)]

    def share(self, batch: int, questions: int) -> float:
        """Return what one answer counts in a step."""
        return 1.0 / (batch if self.by_sheet else batch * questions)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Training and held-out data of a sweep.

    Attributes:
        table: All sheets.
        main: Index of the main question among theirs.
        train: Numbers of the sheets of each fold's training.
        test: Numbers of the held-out sheets of each fold.
        epoch: Number of sheets in an epoch.
        seed: Seed of weights and batches.
        recipe: Initial weights and loss.
    """

    table: Table
    main: int
    train: Sequence[Ints]
    test: Sequence[Ints]
    epoch: int
    seed: int
    recipe: Recipe = field(default_factory=Recipe)

    def proba(self, family: SettingsGroup) -> list[Floats]:
        """Return probability of each answer to the main question for what is held out.

        Returns:
            A fold each: `[rate, pre-training, fine-tuning, held-out sheet, option]`.
        """
        size = weights_of(self.table, family) * len(self.train)
        together = max(1, WORKING_SET // size)
        chunks = [family.rates[start : start + together] for start in range(0, len(family.rates), together)]
        parts = [self._proba(family, rates) for rates in chunks]
        return [np.concatenate([part[fold] for part in parts]) for fold in range(len(self.train))]

    def _proba(self, family: SettingsGroup, rates: Sequence[float]) -> list[Floats]:
        main = self.table.only(self.main)
        steps = self._steps(family)
        held_out = batches_of(main, _filled(self.test))
        axes = len(rates), len(family.pretraining), len(family.finetuning)
        out = [np.empty((*axes, len(test), main.target.shape[1])) for test in self.test]
        for branches, stack in self._branches(family, rates, steps):
            for stop, done in enumerate(self._stopped(stack, main, steps, self._stops(family, family.finetuning))):
                proba = done.proba(main, held_out).numpy()
                found = proba.reshape(len(branches), len(rates), len(self.test), -1, proba.shape[-1])
                for fold, test in enumerate(self.test):
                    out[fold][:, branches, stop] = found[:, :, fold, : len(test)].swapaxes(0, 1)
        return out

    def trained(self, family: SettingsGroup, seeds: int) -> tuple[NetworkBatch, NetworkBatch]:
        """Train networks of one setting on the only fold; return both phases."""
        shape = (self.table.inputs.shape[1] - 1, family.h1, family.h2)
        each = [self.recipe.begun(shape, self.table, self.seed + number) for number in range(seeds)]
        stack = NetworkBatch.begun(
            [torch.stack(same) for same in zip(*each, strict=True)], family.rates, self.recipe.penalty
        )
        steps = self._steps(family)
        (general,) = self._stopped(stack, self.table, steps, self._stops(family, family.pretraining))
        cut = general.only(self.main, self.table.questions)
        stops = self._stops(family, family.finetuning)
        (tuned,) = self._stopped(cut, self.table.only(self.main), steps, stops)
        return general, tuned

    def _branches(
        self, family: SettingsGroup, rates: Sequence[float], steps: list[Batches]
    ) -> Iterator[tuple[list[int], NetworkBatch]]:
        """Yield stacks at the end of pre-training, some lengths of it together."""
        stack = self._begun(family, rates)
        together = max(1, WORKING_SET // (weights_of(self.table, family) * len(stack)))
        waiting: list[NetworkBatch] = []
        stops = self._stops(family, family.pretraining)
        for branch, done in enumerate(self._stopped(stack, self.table, steps, stops)):
            waiting.append(done.only(self.main, self.table.questions))
            if len(waiting) == together or branch == len(stops) - 1:
                yield list(range(branch + 1 - len(waiting), branch + 1)), side_by_side(waiting)
                waiting = []

    def _begun(self, family: SettingsGroup, rates: Sequence[float]) -> NetworkBatch:
        one = self.recipe.begun((self.table.inputs.shape[1] - 1, family.h1, family.h2), self.table, self.seed)
        count = len(rates) * len(self.train)
        repeated = [array.expand(count, *array.shape).clone() for array in one]
        return NetworkBatch.begun(repeated, rates, self.recipe.penalty)

    def _steps(self, family: SettingsGroup) -> list[Batches]:
        count = max(self._stops(family, (*family.pretraining, *family.finetuning)))
        each = np.stack([batches(rows, family.batch, count, self.seed) for rows in self.train], axis=1)
        return [batches_of(self.table, step) for step in each]

    def _stops(self, family: SettingsGroup, epochs: Sequence[int]) -> list[int]:
        return [number * (self.epoch // family.batch) for number in epochs]

    def _stopped(
        self, stack: NetworkBatch, table: Table, steps: list[Batches], stops: Sequence[int]
    ) -> Iterator[NetworkBatch]:
        """Train on, and yields the stack after each number of steps."""
        taken = 0
        for stop in stops:
            for step in steps[taken:stop]:
                stack.step(table, step, self.recipe.share(len(step.sheets) // step.count, table.questions))
            taken = stop
            yield stack


def weights_of(table: Table, family: SettingsGroup) -> int:
    """Count the weights of one network in fine-tuning, the longer phase."""
    inputs, options = table.inputs.shape[1], table.target.shape[1] // table.questions
    return (table.judges + 1) * (inputs * family.h1 + (family.h1 + 1) * family.h2 + (family.h2 + 1) * options)


def _filled(tests: Sequence[Ints]) -> Ints:
    """Held-out sheets `[fold, sheet]`; a shorter fold repeats its first."""
    size = max(len(test) for test in tests)
    return np.stack([np.concatenate([test, np.repeat(test[:1], size - len(test))]) for test in tests])
