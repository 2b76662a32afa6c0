"""In which order questions are asked, and how far the main answer is off after each number of them.

Three ways: each next question by what was answered so far, one fixed order found on the training dialogues, and random
orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from llm_rubric_data import AnswerMatrix, folds_of

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments, codes_of
from pollex.calibration.next_question import next_question
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import log_losses

FOLDS = 5
LEAST = (0.05, 0.02, 0.01, 0.005, 0.002)
"""Shares of Var(ŷ0) at which to stop."""

ADAPTIVE, FIXED, RANDOM = "adaptive", "fixed order", "random order"
POLICIES = (ADAPTIVE, FIXED, RANDOM)


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors by policy, number of questions asked and judgment.

    Attributes:
        squares: Squared errors of the expected answer `[asked, judgment]`.
        losses: Log-losses, likewise.
    """

    squares: Floats
    losses: Floats

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.squares + other.squares, self.losses + other.losses)

    def over(self, count: float) -> Errors:
        """Mean of what was summed."""
        return Errors(self.squares / count, self.losses / count)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a set of dialogues came to.

    Attributes:
        errors: By policy.
        stopped: By share to stop at: how many questions each judgment's dialogue was asked `[judgment]`, and errors
            with a single row.
        orders: The fixed orders found, one a training set.
    """

    errors: dict[str, Errors]
    stopped: dict[float, tuple[Floats, Errors]]
    orders: list[list[str]]


def crossfitted(sheets: AnswerMatrix, kind: type[JudgedEstimator], splits: int, draws: int) -> Outcome:
    """Each dialogue by models that did not see it."""
    total = blank(sheets)
    for split in range(splits):
        for number, rows in enumerate(folds_of(sheets, split, FOLDS)):
            part = tested(sheets.without(rows), sheets.part(rows), kind, draws, seed=1000 * split + number)
            for policy in POLICIES:
                _add(total.errors[policy], rows, part.errors[policy], splits)
            for least, (asked, errors) in part.stopped.items():
                total.stopped[least][0][rows] += asked / splits
                _add(total.stopped[least][1], rows, errors, splits)
            total.orders.extend(part.orders)
    return total


def transferred(training: AnswerMatrix, sheets: AnswerMatrix, kind: type[JudgedEstimator], draws: int) -> Outcome:
    """Dialogues of another kind than those of training."""
    return tested(training, sheets, kind, draws, seed=0)


def tested(
    training: AnswerMatrix, held_out: AnswerMatrix, kind: type[JudgedEstimator], draws: int, seed: int
) -> Outcome:
    """All policies on held-out sheets, by a model of the training sheets."""
    model = fit(kind, training)
    reference = training.X[np.unique(training.dialogue, return_index=True)[1]]
    _, firsts, sheet_of = np.unique(held_out.dialogue, return_index=True, return_inverse=True)
    texts = held_out.X[firsts]
    order, left, variances = adaptive_order(model, texts, reference, seed)
    fixed = fixed_order(training, kind, seed)
    width = len(model.questionnaire_.asked)
    rng = np.random.default_rng(seed)
    random = [
        errors_of(model, held_out, rng.permuted(np.tile(np.arange(width), (len(texts), 1)), axis=1)[sheet_of])
        for _ in range(draws)
    ]
    adaptive = errors_of(model, held_out, order[sheet_of])
    errors = {
        ADAPTIVE: adaptive,
        FIXED: errors_of(model, held_out, np.tile(fixed, (len(held_out), 1))),
        RANDOM: sum(random[1:], random[0]).over(draws),
    }
    stopped = {least: at_stop(adaptive, stops(left, variances, least)[sheet_of]) for least in LEAST}
    names = [scale.question for scale in model.questionnaire_.asked]
    return Outcome(errors, stopped, [[names[place] for place in fixed]])


def fit(kind: type[JudgedEstimator], sheets: AnswerMatrix) -> JudgedEstimator:
    """A model of the main answers."""
    return kind().fit(sheets.X, main_judgments(sheets), questions=sheets.questions, groups=sheets.dialogue)


def main_judgments(sheets: AnswerMatrix) -> Judgments:
    """Every sheet's answer to the main question."""
    names = tuple(sorted(set(sheets.judges)))
    places = np.full(len(sheets), sheets.questions.index())
    return Judgments(np.arange(len(sheets)), places, codes_of(sheets.judges, names), sheets.main, names)


def adaptive_order(model: JudgedEstimator, texts: Floats, reference: Floats, seed: int) -> tuple[Ints, Floats, Floats]:
    """In which order each text is asked, what was left to gain before each question, and Var(ŷ0) `[text, asked]`."""
    sheet = model.questionnaire_
    names = {scale.question: place for place, scale in enumerate(sheet.asked)}
    X = np.full_like(texts, np.nan)
    order, left, variances = [], [], []
    for _ in names:
        found = next_question(model, X, reference, least=0.0, seed=seed)
        places = np.array([names[question] for question in found.question if question is not None])
        order.append(places)
        left.append(found.left)
        variances.append(found.variance)
        X = masked(model, texts, np.stack(order, axis=1))
    return np.stack(order, axis=1), np.stack(left, axis=1), np.stack(variances, axis=1)


def fixed_order(training: AnswerMatrix, kind: type[JudgedEstimator], seed: int) -> Ints:
    """The best order found on training sheets, greedily by the log-loss of an inner cross-fitting `[asked]`."""
    folds = folds_of(training, seed, FOLDS)
    models = [fit(kind, training.without(rows)) for rows in folds]
    order: list[int] = []
    left = set(range(len(training.questions.asked)))
    while left:
        losses = {place: _inner_loss(training, folds, models, [*order, place]) for place in sorted(left)}
        order.append(min(losses, key=losses.__getitem__))
        left.remove(order[-1])
    return np.array(order)


def _inner_loss(
    training: AnswerMatrix, folds: Sequence[Ints], models: Sequence[JudgedEstimator], asked: list[int]
) -> float:
    total = 0.0
    for rows, model in zip(folds, models, strict=True):
        part = training.part(rows)
        X = masked(model, part.X, np.tile(asked, (len(rows), 1)))
        total += float(log_losses(model.predict_proba(X, part.judges), part.main).sum())
    return total


def masked(model: JudgedEstimator, X: Floats, asked: Ints) -> Floats:
    """X with the questions that were asked alone.

    Args:
        asked: Places `[row, question]`.
    """
    lengths = [len(scale.values) for scale in model.questionnaire_.asked]
    known = np.zeros((len(X), len(lengths)), dtype=bool)
    np.put_along_axis(known, asked, True, axis=1)
    return np.where(np.repeat(known, lengths, axis=1), X, np.nan)


def errors_of(model: JudgedEstimator, sheets: AnswerMatrix, order: Ints) -> Errors:
    """Errors after 0, 1, 2 … questions `[asked, judgment]`; `order` is `[judgment, asked]`."""
    values = np.array(sheets.questions.scale().values)
    squares, losses = [], []
    for count in range(order.shape[1] + 1):
        proba = model.predict_proba(masked(model, sheets.X, order[:, :count]), sheets.judges)
        squares.append((proba @ values - values[sheets.main]) ** 2)
        losses.append(log_losses(proba, sheets.main))
    return Errors(np.stack(squares), np.stack(losses))


def stops(left: Floats, variances: Floats, least: float) -> Ints:
    """After how many questions each text stops `[text]`: where asking does not pay any more."""
    pays = left >= least * variances
    return np.where(pays.all(axis=1), pays.shape[1], pays.argmin(axis=1))


def at_stop(errors: Errors, count: Ints) -> tuple[Floats, Errors]:
    """Each judgment's errors after its own number of questions."""
    rows = np.arange(len(count))
    return count.astype(float), Errors(errors.squares[count, rows][None], errors.losses[count, rows][None])


def blank(sheets: AnswerMatrix) -> Outcome:
    """Zeros, to add to."""
    width = len(sheets.questions.asked) + 1

    def zeros(rows: int) -> Errors:
        return Errors(np.zeros((rows, len(sheets))), np.zeros((rows, len(sheets))))

    return Outcome(
        {policy: zeros(width) for policy in POLICIES},
        {least: (np.zeros(len(sheets)), zeros(1)) for least in LEAST},
        [],
    )


def _add(total: Errors, rows: Ints, part: Errors, splits: int) -> None:
    total.squares[:, rows] += part.squares / splits
    total.losses[:, rows] += part.losses / splits
