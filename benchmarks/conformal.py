"""Whether the window with a guarantee keeps it: how often true precision is below P, for it and for the plug-in one.

    python benchmarks/conformal.py [--splits 1000] [--seed 0]
    python benchmarks/conformal.py --data LOG [LOG …] [--real-splits 20] [--pools FOLDER]

Each of the 1,000 splits draws calibration conversations from a population whose precision over
every threshold is known, fits both windows and looks up their true precisions. A window fails where
either side's is below P = 0.9. The guarantee allows that in 10 % of the splits. Made populations
are of 200,000; one has no threshold that is good enough, by a hair; one breaks what the guarantee
rests on, a precision that doesn't rise again on the way inwards.

With `--data` the populations are real: the held-out scores of each real split, drawn from with
replacement. And as `learn` does it: both windows fitted on a training half, looked at on the
held-out half. There the true precision is not
known: what is printed is how often those outside the window are labelled right, all splits
    together.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from embedded_pools import JudgedPool, judged_pool
from small_form import Findings, arguments_of, run

from pollex.formats.read_logs import read_logs
from pollex.measures.intervals import compute_clopper_pearson_interval
from pollex.prompts.domain import DomainProfile
from pollex.selection.alpha import choose_alpha_by_cross_validation
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME, SELECTION_POLICY_BY_NAME
from pollex.selection.pool import Pool
from pollex.selection.threshold import (
    GUARANTEE_FAILURE_RATE,
    REQUIRED_PRECISION,
    Window,
    fit_guaranteed_window,
    fit_uncertainty_window,
)

SIZES = (100, 200, 400, 1000)
MADE = 200_000
BUDGET = (10, 10)
ROUNDING = 1e-12

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Fit = Callable[[Floats, Bools, float], Window]

WINDOWS: dict[str, Fit] = {
    "plug-in": fit_uncertainty_window,
    "guaranteed": lambda scores, positive, theta: (
        fit_guaranteed_window(scores, positive, theta).window
    ),
}


@dataclass(frozen=True)
class Population:
    """Scores with labels, sorted, that are all there is: `[conversation]`."""

    scores: Floats
    positive: Bools

    @classmethod
    def of(cls, scores: Floats, positive: Bools) -> Population:
        """Sorted by score."""
        order = np.argsort(scores, kind="stable")
        return cls(np.round(scores[order], 9), positive[order])

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
        """Conversations with replacement, of both classes."""
        while True:
            rows = rng.integers(len(self.scores), size=n)
            if 0 < self.positive[rows].sum() < n:
                return self.scores[rows], self.positive[rows]

    def beyond(self, window: Window) -> tuple[int, int, bool]:
        """Conversations outside the window, those of them labelled right, and whether either side is below P."""
        sides = []
        if window.upper is not None:
            sides.append(self.positive[np.searchsorted(self.scores, window.upper, side="right") :])
        if window.lower is not None:
            sides.append(~self.positive[: np.searchsorted(self.scores, window.lower, side="right")])
        below = any(len(side) > 0 and side.mean() < REQUIRED_PRECISION - ROUNDING for side in sides)
        return sum(map(len, sides)), int(sum(side.sum() for side in sides)), below


def made(rng: np.random.Generator) -> Iterator[tuple[str, Population]]:
    """Populations by name; the score is normal, the chance of a thumb up depends on it."""
    scores = rng.normal(size=MADE)
    worlds = {
        "well apart": 1 / (1 + np.exp(-(0.5 + 3 * scores))),
        "as real logs": 1 / (1 + np.exp(-(1.0 + 1.5 * scores))),
        "never good enough, by a hair": np.where(
            scores > 0, REQUIRED_PRECISION - 0.005, 1 - REQUIRED_PRECISION + 0.005
        ),
        "a dip at both ends": np.where(np.abs(scores) > 1.5, 0.5, 1 / (1 + np.exp(-4 * scores))),
    }
    for name, chance in worlds.items():
        yield name, Population.of(scores, rng.random(MADE) < chance)


def main() -> int:
    """Print coverage and yield of both windows."""
    parser = arguments_of(__doc__)
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--data", nargs="*", default=[], metavar="LOG", help="labelled logs, in place of made data"
    )
    parser.add_argument(
        "--real-splits", type=int, default=20, help="whose held-out scores are the populations"
    )
    parser.add_argument("--domain", help="a domain profile; the neutral one if left out")
    parser.add_argument(
        "--embeddings", help="folder of cached embeddings; an empty temporary one if left out"
    )
    parser.add_argument(
        "--pools", type=Path, help="folder in which judged pools are kept for another run"
    )
    return run(parser, measure_all, ["--splits", "100"])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    rng = np.random.default_rng(arguments.seed)
    failures: dict[str, int] = {}
    print(
        f"P = {REQUIRED_PRECISION}, δ = {GUARANTEE_FAILURE_RATE}, {arguments.splits} splits a row; [95 % interval]"
    )
    print(
        f"{'':<32}{'n':>6}  {'window':<12}{'true precision below P':>26}{'yield':>8}{'right':>8}{'no side':>9}"
    )
    if not arguments.data:
        for name, population in made(rng):
            for n in SIZES:
                print(coverage(name, [population], n, arguments.splits, rng, failures))
        return Findings(figures=failures, bars={KEPT: kept(failures, arguments.splits)})
    profile = DomainProfile.load(arguments.domain) if arguments.domain else DomainProfile.neutral()
    with tempfile.TemporaryDirectory() as scratch:
        for path in arguments.data:
            logs = read_logs(path)
            embeddings = Path(arguments.embeddings or scratch)
            pools = [
                judged_pool(logs, profile, seed, embeddings, arguments.pools)
                for seed in range(arguments.real_splits)
            ]
            chosen = [Chosen.of(pool) for pool in pools]
            populations = [Population.of(one.tested, one.pool.truth) for one in chosen]
            for n in SIZES:
                print(
                    coverage(
                        f"{Path(path).name}, resampled",
                        populations,
                        n,
                        arguments.splits,
                        rng,
                        failures,
                    )
                )
            print(as_learnt(Path(path).name, chosen))
    return Findings(figures=failures, bars={KEPT: kept(failures, arguments.splits)})


KEPT = "the guaranteed window is below its precision in no more splits than it allows"


def kept(failures: Mapping[str, int], splits: int) -> bool:
    """Tell whether no guaranteed window failed more often than allowed, by more than chance."""
    return all(
        compute_clopper_pearson_interval(failed, splits)[0] <= GUARANTEE_FAILURE_RATE
        for failed in failures.values()
    )


def coverage(
    name: str,
    populations: Sequence[Population],
    n: int,
    splits: int,
    rng: np.random.Generator,
    failures: dict[str, int],
) -> str:
    """One row a window: share of splits that fail, mean yield, and how often neither side has a threshold.

    How often the guaranteed window failed is added to `failures`.
    """
    failed, yields, right, empty = ({window: [] for window in WINDOWS} for _ in range(4))  # type: ignore[var-annotated]
    for number in range(splits):
        population = populations[number % len(populations)]
        scores, positive = population.drawn(n, rng)
        theta = compute_midpoint_of_class_means(scores, positive)
        for window, fit in WINDOWS.items():
            found = fit(scores, positive, theta)
            outside, hits, below = population.beyond(found)
            failed[window].append(below)
            yields[window].append(outside / len(population.scores))
            right[window] += [hits / outside] if outside else []
            empty[window].append((found.lower is None) + (found.upper is None))
    failures[f"{name}, {n}"] = sum(failed["guaranteed"])
    return "\n".join(
        f"{name:<32}{n:>6}  {window:<12}{_share(sum(failed[window]), splits):>26}{np.mean(yields[window]):>8.3f}"
        f"{f'{np.mean(right[window]):.3f}' if right[window] else '–':>8}{np.mean(empty[window]) / 2:>9.3f}"
        for window in WINDOWS
    )


def _share(hits: int, n: int) -> str:
    low, high = compute_clopper_pearson_interval(hits, n)
    return f"{hits / n:.3f} [{low:.3f}, {high:.3f}]"


@dataclass(frozen=True)
class Chosen:
    """What `learn` makes of a pool.

    Attributes:
        fitted: NetSAT of training conversations by the rubrics chosen on all of them
            `[conversation]`.
        honest: By rubrics chosen without their fold `[conversation]`.
        tested: Of held-out conversations `[conversation]`.
    """

    pool: JudgedPool
    fitted: Floats
    honest: Floats
    tested: Floats

    @classmethod
    def of(cls, pool: JudgedPool) -> Chosen:
        """By the default policy, α by cross-validation."""
        found = choose_alpha_by_cross_validation(
            pool.values, pool.positive, pool.sat, pool.ids, BUDGET, pool.folds
        )
        problem = Pool.of(pool.values, pool.positive, pool.sat, pool.ids, BUDGET)
        chosen = np.sort(
            SELECTION_POLICY_BY_NAME[DEFAULT_SELECTION_POLICY_NAME](
                problem, found.alpha, np.random.default_rng(0)
            )
        )
        return cls(
            pool, pool.values[:, chosen].sum(1), found.held_out, pool.held_out[:, chosen].sum(1)
        )


def as_learnt(name: str, splits: Sequence[Chosen]) -> str:
    """Held-out conversations outside each window, and how many of them are labelled right, over all splits."""
    lines = [
        f"{name}, as learnt: {len(splits)} splits; they share conversations, so the intervals are too narrow"
    ]
    scored = {
        "plug-in, as the paper": [(one.fitted, WINDOWS["plug-in"]) for one in splits],
        "plug-in, cross-fitted scores": [(one.honest, WINDOWS["plug-in"]) for one in splits],
        "guaranteed": [(one.honest, WINDOWS["guaranteed"]) for one in splits],
    }
    for title, fits in scored.items():
        n = outside = right = failed = 0
        for one, (scores, fit) in zip(splits, fits, strict=True):
            window = fit(
                scores,
                one.pool.positive,
                compute_midpoint_of_class_means(one.fitted, one.pool.positive),
            )
            beyond, hits, below = Population.of(one.tested, one.pool.truth).beyond(window)
            n = n + len(one.tested)
            outside = outside + beyond
            right = right + hits
            failed = failed + below
        words = f"right {_share(right, outside)}" if outside else "nothing outside"
        lines.append(
            f"  {title:<30}{outside} of {n} held-out scores outside ({outside / n:.3f}), {words}; "
            f"observed precision of a side below P in {failed} of {len(splits)} splits"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
