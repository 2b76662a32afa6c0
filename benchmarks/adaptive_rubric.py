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
from pathlib import Path
from typing import Any

import numpy as np
from llm_rubric_data import AnswerMatrix, read_sheets
from question_orders import ADAPTIVE, FIXED, FOLDS, POLICIES, RANDOM, Outcome, crossfitted, transferred

from pollex.calibration.models import model_named
from pollex.measures.arrays import Floats, Ints

RESAMPLES = 2000


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


def report_of(sheets: AnswerMatrix, outcome: Outcome) -> dict[str, Any]:
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
