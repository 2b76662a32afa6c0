"""How fast selection is: `python benchmarks/selection.py [--quick]`.

Prints the time of a core and the peak memory of the default policy, which is the paper's greedy
one, at three sizes, up to a pool of 2,000 rubrics on 10,000 conversations, and its ratio to a plain
Python loop, where both run.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from small_form import Findings, arguments_of, run

from pollex.selection.losses import THRESHOLD_GRID_POINTS
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME, select_rubrics

# The plain loop that is timed is the one that the tests hold the arrays to.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "selection"))
from plain_loops import plain_greedy

Result = TypeVar("Result")
Problem = tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]

BUDGET = (10, 10)
ALPHA = 1.0


def main() -> int:
    """Print the figures."""
    parser = arguments_of(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--shrink", type=int, default=1, help="so many times fewer conversations and rubrics"
    )
    return run(parser, measure_all, ["--shrink", "10"])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    rng = np.random.default_rng(arguments.seed)
    shrink = arguments.shrink
    growth([(10_000 // shrink // k, 2_000 // shrink) for k in (4, 2, 1)], rng)
    same = ratio(1_000 // shrink, 100 // min(shrink, 5), rng)
    return Findings(bars={"arrays choose what the plain loop chooses": same})


def growth(sizes: list[tuple[int, int]], rng: np.random.Generator) -> None:
    """At growing sizes; the last one is the size that the project promises."""
    for conversations, rubrics in sizes:
        problem = pool(conversations, rubrics, rng)
        _, seconds = timed(
            partial(select_rubrics, *problem, BUDGET, ALPHA, rng, DEFAULT_SELECTION_POLICY_NAME)
        )
        print(
            f"{DEFAULT_SELECTION_POLICY_NAME:<10} {conversations:>6} conversations × "
            f"{rubrics} rubrics, {BUDGET[0]} + {BUDGET[1]} "
            f"steps, {THRESHOLD_GRID_POINTS} thresholds: {seconds:6.2f} s of CPU, peak {peak_megabytes():5.0f} MB"
        )


def ratio(conversations: int, rubrics: int, rng: np.random.Generator) -> bool:
    """Time arrays against the plain loop, and return whether both choose the same."""
    values, positive, sat, ids = problem = pool(conversations, rubrics, rng)
    selection, fast = timed(
        partial(select_rubrics, *problem, (3, 3), ALPHA, rng, DEFAULT_SELECTION_POLICY_NAME)
    )
    chosen, slow = timed(
        partial(plain_greedy, values.tolist(), positive.tolist(), sat.tolist(), ids, (3, 3), ALPHA)
    )
    same = chosen == selection.chosen.tolist()
    print(
        f"{'plain':<10} {conversations:>6} conversations × {rubrics} rubrics, 3 + 3 steps: loop {slow:.2f} s, "
        f"arrays {fast:.4f} s, {slow / fast:.0f} times faster, {'same' if same else 'DIFFERENT'} choice"
    )
    return bool(same)


def pool(conversations: int, rubrics: int, rng: np.random.Generator) -> Problem:
    """Likert answers that follow the label more or less, half of the rubrics DSAT."""
    positive = np.arange(conversations) % 2 == 0
    values = rng.normal(2, 1.2, (conversations, rubrics)) + positive[:, None] * rng.uniform(
        -0.2, 0.8, rubrics
    )
    sat = np.arange(rubrics) % 2 == 0
    values = np.clip(np.round(values), 0, 4) * 2.5 - 10 * ~sat
    return values, positive, sat, [f"{rubric:05}" for rubric in range(rubrics)]


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What `work` returns, and the seconds of CPU that it takes: a busy machine changes little about these."""
    start = time.process_time()
    return work(), time.process_time() - start


def peak_megabytes() -> float:
    """The most memory that this process has held so far (ru_maxrss: kilobytes on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**2 if sys.platform == "darwin" else 1024
    )


if __name__ == "__main__":
    raise SystemExit(main())
