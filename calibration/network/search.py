"""Random search over the paper's grid, within a time that a user waits.

Every draw is a shape, batch and rate; its 36 pairs of epochs come almost for nothing (see `sweep`). The best is that of
the highest held-out log-likelihood of the main question. Among hundreds that is luck, too: of how networks begin, of
the folds and of the texts. So networks that begin anew run, in other folds, against as many with the settings that were
there before the search. As the texts are the same, they win only by more than a standard error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from pollex.calibration.crossfit import assign_folds
from pollex.calibration.judgments import AnswerMatrix
from pollex.calibration.model_choice import standard_error
from pollex.calibration.network.batched import NetworkBatch, Penalty, table_of, without_bias_unit
from pollex.calibration.network.sweep import Recipe, SettingsGroup, Sweep, weights_of
from pollex.calibration.network.training import Heads, TrainingData, one_thread
from pollex.calibration.network.weights import Weights
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints

UNITS = (10, 25, 50, 100)
BATCHES = (32, 64, 128, 256)
RATES = (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
EPOCHS = (5, 10, 20, 30, 40, 50)
"""The paper's grid: 16,128 settings."""

FOLDS = 5
THINNED = 3
"""So many copies of each sheet, with questions hidden, stand for question dropout."""
NETWORKS = 3
"""Networks that are averaged, of either side, when the best draw runs against the settings given."""
AGAIN = 0.9
"""How long that takes, as a multiple of a draw, at most."""
STEP_SECONDS, WEIGHT_SECONDS = 5e-4, 1e-8
"""A first guess at how long a step of a network takes: so much, and so much a weight. The first draw corrects it."""


@dataclass(frozen=True)
class Trial:
    """One setting and how it did.

    Attributes:
        family: Has one rate and one number of epochs of each phase.
        log_likelihood: Mean over held-out answers to the main question, in nats.
    """

    family: SettingsGroup
    log_likelihood: float


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        given: Held-out log-likelihood of several networks' mean, with the settings that were given.
        again: The same of the trial with the highest log-likelihood; None where there are no trials.
        error: Standard error of the difference between the two, over texts.
        trials: All, in the order that they were tried.
        passed_over: How many draws would have taken longer than the time left.
        seconds: What the search took.
    """

    given: float
    again: float | None
    error: float
    trials: tuple[Trial, ...]
    passed_over: int
    seconds: float

    @property
    def best(self) -> Trial | None:
        """The best trial; None unless it is significantly better than the given settings."""
        return best_of(self.trials) if self.again is not None and self.again - self.given > self.error else None

    def sentence(self) -> str:
        """Describe the search and its result."""
        late = f", {self.passed_over} draws would have taken too long" if self.passed_over else ""
        tried = f"by lot, {len(self.trials)} settings of the network tried in {self.seconds:.0f} s{late}"
        return f"{self._taken()}; {tried}"

    def _taken(self) -> str:
        least = f"log-loss {-self.given:.3f}"
        if self.again is None:
            return f"the given settings, {least}: no draw is better"
        if self.best is None:
            best = f"the best of them log-loss {-self.again:.3f}, {self._apart()}"
            return f"the given settings, {least}: no draw is better by more than a standard error; {best}"
        return f"{self.best.family.name}, log-loss {-self.again:.3f}, those given {least}, {self._apart()}"

    def _apart(self) -> str:
        return f"the difference ± {self.error:.3f}, in new folds of the same texts that chose it"


def best_of(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the highest log-likelihood."""
    return max(trials, key=lambda trial: trial.log_likelihood)


def draws(count: int, sheets: int, rng: np.random.Generator) -> list[SettingsGroup]:
    """Draw distinct settings from the grid, with all numbers of epochs.

    None where there are fewer sheets than the smallest batch has.
    """
    sizes = [batch for batch in BATCHES if batch <= sheets]
    axes = (UNITS, UNITS, sizes, RATES)
    every = np.stack(np.meshgrid(*map(np.arange, map(len, axes)), indexing="ij"), axis=-1).reshape(-1, len(axes))
    chosen = every[rng.permutation(len(every))[:count]].tolist()
    return [SettingsGroup(UNITS[a], UNITS[b], sizes[c], (RATES[d],), EPOCHS, EPOCHS) for a, b, c, d in chosen]


def folds_of(sheets: AnswerMatrix, groups: Ints, rng: np.random.Generator) -> tuple[list[Ints], list[Ints]]:
    """Return training and held-out sheets of each fold; groups `[row]` stay together.

    Raises:
        WrongUse: There is one group only.
    """
    own = groups[sheets.row]
    present = len(np.unique(own))
    if present < 2:
        raise WrongUse(
            "one group of texts only to search a network's settings by",
            remedy="give judgments of more texts, or name a model without settings to search for (search=None)",
            option={"model": "judge_mean"},
        )
    test = assign_folds(own, min(FOLDS, present), rng)
    return [np.setdiff1d(np.arange(len(sheets)), rows) for rows in test], test


@dataclass(frozen=True)
class Limits:
    """Limits of a search.

    Attributes:
        draws: Maximum number of draws.
        seconds: For the search and the training after it.
        final: Duration of that training, as a multiple of a draw.
    """

    draws: int
    seconds: float
    final: float


Given = Callable[[Ints, Ints], Floats]
"""Fits networks with the settings that were given to some sheets, and predicts the main answer of others: numbers of
the former and the latter to `[sheet, option]`."""


@dataclass(frozen=True, eq=False)
class FinalComparison:
    """The best draw against the settings given.

    Attributes:
        sweep: Has folds and a seed that chose no draw.
        answers: To the main question `[sheet]`, −1: none.
        texts: The text of each sheet `[sheet]`.
        given: Settings to begin with.
    """

    sweep: Sweep
    answers: Ints
    texts: Ints
    given: Given

    def as_given(self) -> Floats:
        """Log-likelihood of each held-out answer `[answer]` by the mean of networks with the settings given."""
        # Copies with questions hidden are the search's own way to thin.
        folds = zip(self.sweep.train, self.sweep.test, strict=True)
        return self._log_likelihoods([self.given(train[train < self.sweep.epoch], test) for train, test in folds])

    def drawn(self, family: SettingsGroup) -> Floats:
        """Compute log-likelihoods of a family's one setting, with new initial weights."""
        runs = [replace(self.sweep, seed=self.sweep.seed + number).proba(family) for number in range(NETWORKS)]
        return self._log_likelihoods([np.mean(fold, axis=0)[0, 0, 0] for fold in zip(*runs, strict=True)])

    def error(self, difference: Floats) -> float:
        """Return the standard error, over texts, of the mean of a difference `[answer]`."""
        sheets = np.concatenate(self.sweep.test)
        return standard_error(difference, self.texts[sheets[self.answers[sheets] >= 0]])

    def _log_likelihoods(self, folds: Sequence[Floats]) -> Floats:
        """Compute log-likelihoods of the answers from each fold's probabilities `[sheet, option]`."""
        given = [self.answers[test] for test in self.sweep.test]
        each = [proba[answer >= 0, answer[answer >= 0]] for proba, answer in zip(folds, given, strict=True)]
        return _logs(np.concatenate(each))


def random_search(sweep: Sweep, runoff: FinalComparison, limits: Limits, rng: np.random.Generator) -> Found:
    """Try random settings within the limits, and compare the best with those given.

    What fits into the time depends on the machine; where all draws do, the seed alone decides.

    Args:
        sweep: Has the folds in which draws are tried.
        runoff: For the best of them.
        limits: When to stop.
        rng: For the draws.
    """
    begun, pace, reserve, passed_over = time.monotonic(), 1.0, 0.0, 0
    given = runoff.as_given()
    after = limits.final + AGAIN
    trials: list[Trial] = []
    # Those that are surely short come first, so that the pace is known before one that is not.
    long = limits.seconds / 10
    for family in sorted(draws(limits.draws, sweep.epoch, rng), key=lambda one: seconds_of(sweep, one) > long):
        guess = seconds_of(sweep, family)
        ahead = pace * (guess + max(reserve, after * guess))
        if trials and time.monotonic() - begun + ahead > limits.seconds:
            passed_over += 1
            continue
        before = time.monotonic()
        trials += tried(sweep, runoff.answers, family)
        pace = max((time.monotonic() - before) / guess, 0.1)
        reserve = max(reserve, after * guess)
    again = runoff.drawn(best_of(trials).family) if trials else None
    error = 0.0 if again is None else runoff.error(again - given)
    mean = None if again is None else float(again.mean())
    return Found(float(given.mean()), mean, error, tuple(trials), passed_over, time.monotonic() - begun)


def _logs(chosen: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(chosen, np.finfo(float).tiny)))


def tried(sweep: Sweep, answers: Ints, family: SettingsGroup) -> Iterator[Trial]:
    """Return all settings of a family with their held-out log-likelihood."""
    total, count = np.zeros((len(family.rates), len(family.pretraining), len(family.finetuning))), 0
    for proba, test in zip(sweep.proba(family), sweep.test, strict=True):
        answered = test[answers[test] >= 0]
        own = proba[..., np.isin(test, answered), :]
        chosen: Floats = own[..., np.arange(len(answered)), answers[answered]]
        total = total + _logs(chosen).sum(axis=-1)
        count += len(answered)
    for (rate, pre, fine), value in np.ndenumerate(total / count):
        one = replace(
            family,
            rates=(family.rates[rate],),
            pretraining=(family.pretraining[pre],),
            finetuning=(family.finetuning[fine],),
        )
        yield Trial(one, float(value))


def seconds_of(sweep: Sweep, family: SettingsGroup) -> float:
    """Return a guess at how long a draw takes."""
    steps = (max(family.pretraining) + len(family.pretraining) * max(family.finetuning)) * (sweep.epoch // family.batch)
    networks = len(family.rates) * len(sweep.train)
    return networks * steps * (STEP_SECONDS + WEIGHT_SECONDS * weights_of(sweep.table, family)) + 1e-3


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and penalties of a search.

    Attributes:
        lesson: Sheets and inputs.
        heads: Questions answered by softmax.
        judges: Number of known judges.
        main: Index of the main question among the sheets'.
        decay: Penalty on shared weights.
        shrinkage: Penalty on deltas.
        dropout: Share of the sheets whose copies have hidden questions.
    """

    lesson: TrainingData
    heads: Heads
    judges: int
    main: int
    decay: float
    shrinkage: float
    dropout: float

    def sweep(self, train: list[Ints], test: list[Ints], seed: int) -> Sweep:
        """Make a sweep over the sheets and, with dropout, three thinned copies of each."""
        lesson, count = self.lesson, len(self.lesson.sheets)
        copies = THINNED if self.dropout else 0
        rng = np.random.default_rng(seed)
        inputs = np.concatenate([lesson.inputs, *(thinned(lesson, self.dropout, rng) for _ in range(copies))])
        every = np.tile(np.arange(count), copies + 1)
        # Single precision: what is held out decides, and that doesn't hang on the order of sums.
        table = table_of(inputs, lesson.sheets.where(every), self.judges, self.heads.outputs, torch.float32)
        size = len(train[0])
        recipe = Recipe(self.heads, Penalty(self.decay / size, self.shrinkage / size), by_sheet=True)
        own = [np.concatenate([rows + copy * count for copy in range(copies + 1)]) for rows in train]
        return Sweep(table, self.main, own, test, count, seed, recipe)


@one_thread()
def searched(problem: Problem, groups: Ints, given: Given, limits: Limits, seed: int) -> Found:
    """Search in folds of the problem's sheets.

    Args:
        problem: What to learn.
        groups: Of each row `[row]`.
        given: Settings to begin with.
        limits: When to stop.
        seed: Of all that is random.
    """
    rng = np.random.default_rng(seed)
    sheets = problem.lesson.sheets
    sweep = problem.sweep(*folds_of(sheets, groups, rng), seed)
    other = problem.sweep(*folds_of(sheets, groups, rng), seed + 1)
    runoff = FinalComparison(other, sheets.answer[:, problem.main], sheets.row, given)
    return random_search(sweep, runoff, limits, rng)


@one_thread()
def trained_with(problem: Problem, family: SettingsGroup, seeds: int, seed: int) -> tuple[Weights, Weights]:
    """Train networks on everything; return the weights after each phase."""
    every = np.arange(len(problem.lesson.sheets))
    general, tuned = problem.sweep([every], [every[:0]], seed).trained(family, seeds)
    return _kept(general, problem, slice(None)), _kept(tuned, problem, slice(problem.main, problem.main + 1))


def thinned(lesson: TrainingData, dropout: float, rng: np.random.Generator) -> Floats:
    """Hide some questions of some sheets in inputs `[sheet, input + 1]`; see `training.TrainingConfig`."""
    columns, asked = len(lesson.blocks), int(lesson.blocks.max(initial=-1)) + 1
    count = len(lesson.inputs)
    chance = rng.random((count, 1)) * (rng.random((count, 1)) < dropout)
    hidden = rng.random((count, asked)) < chance
    out = lesson.inputs.copy()
    out[:, :columns][hidden[:, lesson.blocks]] = 0.0
    out[:, columns : columns + asked][hidden] = 1.0
    return out


def _kept(stack: NetworkBatch, problem: Problem, heads: slice) -> Weights:
    """Return a stack's weights with these heads, without the unknown judge's."""
    W1, W2, V, W1a, W2a, Va = (array.double().numpy() for array in without_bias_unit(stack.weights))
    W1a, W2a, Va = W1a[:, : problem.judges], W2a[:, : problem.judges], Va[:, : problem.judges]
    options = problem.heads.options[heads]
    cuts = np.zeros((len(W1), len(options), problem.heads.outputs - 1))
    return Weights(W1, W2, V, W1a, W2a, Va, cuts, options, problem.heads.ordinal[heads])
