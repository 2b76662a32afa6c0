"""What it is worth to choose the next question by what was answered so far, beside a random and a fixed order.

    python benchmarks/adaptive_rubric.py --data FOLDER [--splits 3] [--draws 10] [--model ordinal] [--plot FILE.svg]

FOLDER holds LLM-Rubric's released tables. On the synthetic dialogues everything is cross-fitted by dialogue, five folds
on each split; on the real ones, the model learnt from all synthetic ones. The fixed order is the best found on the
training dialogues alone: greedily, by the log-loss of an inner cross-fitting. Error of the main answer after each
number of questions, as the LLM was asked them; all judges' answers to it are predicted, each judge by name.
Intervals are 95 % bootstrap over dialogues; a judgment's error is its mean over splits (and draws of random orders).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from llm_rubric_data import Sheets, folds_of, read_sheets

from pollex.calibration.adaptive import next_question
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments, codes_of
from pollex.calibration.measures import log_losses
from pollex.calibration.models import model_named
from pollex.calibration.questionnaire import Floats, Ints

FOLDS = 5
RESAMPLES = 2000
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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=10, help="of random orders, on each fold")
    parser.add_argument("--model", default="ordinal", help="a file of calibration/models")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="ends in .svg or .png")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the tables")
    arguments = parser.parse_args()
    synthetic, real = (read_sheets(arguments.data, which) for which in ("synthetic", "real"))
    kind = model_named(arguments.model)
    found = {
        "synthetic, cross-fitted": (synthetic, crossfitted(synthetic, kind, arguments.splits, arguments.draws)),
        "real, learnt on synthetic": (real, transferred(synthetic, real, kind, arguments.draws)),
    }
    reports = {title: report_of(sheets, outcome) for title, (sheets, outcome) in found.items()}
    if arguments.json:
        print(json.dumps(reports))
    else:
        print(f"Model: {kind.title}; {arguments.splits} splits × {FOLDS} folds, {arguments.draws} random orders a fold")
        print("\n\n".join(in_words(title, report) for title, report in reports.items()))
    if arguments.plot:
        draw(arguments.plot, reports)


def crossfitted(sheets: Sheets, kind: type[JudgedEstimator], splits: int, draws: int) -> Outcome:
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


def transferred(training: Sheets, sheets: Sheets, kind: type[JudgedEstimator], draws: int) -> Outcome:
    """Dialogues of another kind than those of training."""
    return tested(training, sheets, kind, draws, seed=0)


def tested(training: Sheets, held_out: Sheets, kind: type[JudgedEstimator], draws: int, seed: int) -> Outcome:
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


def fit(kind: type[JudgedEstimator], sheets: Sheets) -> JudgedEstimator:
    """A model of the main answers."""
    return kind().fit(sheets.X, main_judgments(sheets), questions=sheets.questions, groups=sheets.dialogue)


def main_judgments(sheets: Sheets) -> Judgments:
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


def fixed_order(training: Sheets, kind: type[JudgedEstimator], seed: int) -> Ints:
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


def _inner_loss(training: Sheets, folds: Sequence[Ints], models: Sequence[JudgedEstimator], asked: list[int]) -> float:
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


def errors_of(model: JudgedEstimator, sheets: Sheets, order: Ints) -> Errors:
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


def blank(sheets: Sheets) -> Outcome:
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


def report_of(sheets: Sheets, outcome: Outcome) -> dict[str, Any]:
    """Figures with intervals, as JSON values."""
    weights = dialogue_weights(sheets.dialogue)
    last = outcome.errors[ADAPTIVE]
    return {
        "judgments": len(sheets),
        "dialogues": len(np.unique(sheets.dialogue)),
        "rmse": {policy: [rmse(row, weights) for row in outcome.errors[policy].squares] for policy in POLICIES},
        "log_loss": {policy: [mean(row, weights) for row in outcome.errors[policy].losses] for policy in POLICIES},
        "gains": {
            policy: {
                "rmse": area(last.squares, outcome.errors[policy].squares, weights, root=True),
                "log_loss": area(last.losses, outcome.errors[policy].losses, weights, root=False),
            }
            for policy in (FIXED, RANDOM)
        },
        "stopped": {
            str(least): {
                "asked": mean(asked, weights),
                "rmse": rmse(errors.squares[0], weights),
                "log_loss": mean(errors.losses[0], weights),
                "log_loss_less_all": mean(errors.losses[0] - last.losses[-1], weights),
            }
            for least, (asked, errors) in outcome.stopped.items()
        },
        "orders": outcome.orders,
    }


def dialogue_weights(dialogue: Ints) -> Floats:
    """How often each judgment is in a resample of the dialogues `[1 + resample, judgment]`; ones in the first row."""
    codes = np.unique(dialogue, return_inverse=True)[1]
    count = codes.max() + 1
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return np.concatenate([np.ones((1, len(codes))), drawn[:, codes]]).astype(np.float64)


def mean(values: Floats, weights: Floats) -> list[float]:
    """Mean with its interval: value, low, high."""
    return _interval(weights @ values / weights.sum(axis=1))


def rmse(squares: Floats, weights: Floats) -> list[float]:
    """Root of the mean with its interval."""
    return _interval(np.sqrt(weights @ squares / weights.sum(axis=1)))


def area(ours: Floats, theirs: Floats, weights: Floats, *, root: bool) -> list[float]:
    """By how much ours is lower, mean over all numbers of questions but none and all, where policies are alike."""
    means = [weights @ errors[1:-1].T / weights.sum(axis=1, keepdims=True) for errors in (theirs, ours)]
    curves = [np.sqrt(found) for found in means] if root else means
    return _interval((curves[0] - curves[1]).mean(axis=1))


def _interval(draws: Floats) -> list[float]:
    low, high = np.quantile(draws[1:], [0.025, 0.975])
    return [float(draws[0]), float(low), float(high)]


def in_words(title: str, report: Mapping[str, Any]) -> str:
    """The tables of one set of dialogues."""
    lines = [f"{title}: {report['judgments']} judgments of {report['dialogues']} dialogues"]
    for name, measure in (("RMSE", "rmse"), ("log-loss", "log_loss")):
        lines.append(f"{name + ' after':<16}" + "".join(f"{policy:>24}" for policy in POLICIES))
        rows = zip(*(report[measure][policy] for policy in POLICIES), strict=True)
        lines += [
            f"{count:>4} questions  " + "".join(f"{cell(one):>24}" for one in row) for count, row in enumerate(rows)
        ]
    for policy, gains in report["gains"].items():
        lines += [f"Adaptive beside {policy}, mean over 1 to 8 questions: {gained(gains)}"]
    for least, found in report["stopped"].items():
        lines.append(
            f"Stop at {float(least):.1%} of the variance: {found['asked'][0]:.1f} questions, "
            f"RMSE {cell(found['rmse'])}, "
            f"log-loss {cell(found['log_loss'])}, above all nine by {cell(found['log_loss_less_all'], signed=True)}"
        )
    lines.append(f"Fixed orders begin with: {', '.join(sorted({' '.join(order[:3]) for order in report['orders']}))}")
    return "\n".join(lines)


def gained(gains: Mapping[str, list[float]]) -> str:
    """What a policy gains, and whether it is more than noise."""
    parts = []
    for name, measure in (("RMSE", "rmse"), ("log-loss", "log_loss")):
        value, low, high = gains[measure]
        verdict = "better" if low > 0 else "WORSE" if high < 0 else "noise"
        parts.append(f"{name} lower by {value:+.4f} [{low:+.4f}, {high:+.4f}]: {verdict}")
    return "; ".join(parts)


def cell(found: Sequence[float], *, signed: bool = False) -> str:
    """A figure with its interval."""
    sign = "+" if signed else ""
    value, low, high = (f"{one:{sign}.3f}" for one in found)
    return f"{value} [{low}, {high}]"


def draw(path: Path, reports: Mapping[str, Mapping[str, Any]]) -> None:
    """The curves, log-loss against questions asked."""
    import matplotlib  # half a second, and only for a plot

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(reports), figsize=(5.5 * len(reports), 4), layout="constrained")
    for axis, (title, report) in zip(np.atleast_1d(axes), reports.items(), strict=True):
        for policy in POLICIES:
            value, low, high = np.array(report["log_loss"][policy]).T
            (line,) = axis.plot(value, marker="o", markersize=3, label=policy)
            axis.fill_between(np.arange(len(value)), low, high, alpha=0.08, color=line.get_color())
        axis.set(title=title, xlabel="questions asked", ylabel="log-loss of the main answer (nats)")
        axis.legend()
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
