"""Whether intervals of the share of good conversations hold what they promise, and what scores save.

    python benchmarks/share.py --data LOG [LOG …] [--labels 100] [--runs 1000] [--json]

Of each log, one half learns a rubric set with the built-in roles (no LLM). The labeled
conversations of the other half are the population: its share of thumbs up is the truth, and samples
are drawn from it with replacement.

- at random: coverage of 95 % intervals and their mean width beside the classical one (Wilson) of
the same labels, with
  the scores of the set that was learned before, and with probabilities cross-fitted from the labels
  themselves
- voluntary: votes that depend on nothing, on what conversations show, or on satisfaction (bad ones
vote twice as
  often): bias and coverage of the share of voters, of the adjusted share, and of bounds with the
  true factor
- two releases: how often a difference of 0 is found (size), and how often .05 with the labels that
the planner asks
  for (power), beside labels alone
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from plain_learning import learn_from
from small_form import FEW, Findings, arguments_of, run, table

import pollex
from pollex.agents.embedded.signals import measure_wording_signals
from pollex.conversations.conversation import Label
from pollex.conversations.splits import split_conversations
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.measures.arrays import Bools, Floats
from pollex.measures.share import (
    LabeledSample,
    bound_share_for_voting_odds,
    count_labels_for_difference,
    estimate_share_difference_from_random_labels,
    estimate_share_from_random_labels,
    estimate_share_from_voluntary_votes,
    estimate_wilson_share,
)
from pollex.runs.options import RunOptions
from pollex.services.share import crossfit_answers

REST = 4_000
VOTERS, SEEN = 200, 2_000
"""Votes, and conversations that they are among."""

DIFFERENCE = 0.05


@dataclass(frozen=True)
class Population:
    """Conversations that samples are drawn from.

    Attributes:
        good: Thumbs `[conversation]`.
        score: Probability of a thumb up by a set that was learned from others `[conversation]`.
        features: See `measure_wording_signals` `[conversation, feature]`.
    """

    good: Bools
    score: Floats
    features: Floats

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """Draw conversations with replacement."""
        return rng.integers(0, len(self.good), n)


def main() -> int:
    """Print one table a log."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="+", required=True, type=Path, help="logs with thumbs")
    parser.add_argument("--labels", type=int, default=100, help="labels at random (default: 100)")
    parser.add_argument(
        "--runs", type=int, default=1000, help="samples a row; a fifth for votes (default: 1000)"
    )
    parser.add_argument("--seed", type=int, default=0)
    return run(parser, measure_all, ["--data", FEW, "--runs", "10"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    report = {
        path.stem: measured(path, given.labels, given.runs, given.seed) for path in given.data
    }
    rows = [row for log in report.values() for row in log["at_random"].values()]
    slack = 4 * np.sqrt(0.95 * 0.05 / given.runs)
    return Findings(
        {"table": table_of(report)},
        report,
        {
            "95 % intervals hold the truth as often as they promise": all(
                row["coverage"] >= 0.95 - slack for row in rows
            ),
            "scores make intervals no wider, but for a twentieth": all(
                row["width"] < 1.05 for row in rows
            ),
        },
    )


def measured(path: Path, labels: int, runs: int, seed: int) -> dict[str, Any]:
    """All rows of one log."""
    people, learned = population(path, seed)
    rng = np.random.default_rng([seed, 1])
    spread = float(np.corrcoef(people.good, people.score)[0, 1])
    return {
        "population": len(people.good),
        "learned_from": learned,
        "share": float(people.good.mean()),
        "correlation": spread,
        "labels": labels,
        "runs": runs,
        "at_random": {
            "set learned before": at_random(
                people, labels, runs, rng, lambda _known, _good: people.score
            ),
            "cross-fitted": at_random(
                people,
                labels,
                runs,
                rng,
                lambda known, good: crossfit_answers(people.features, known, good, rng),
            ),
        },
        "voluntary": {
            name: voluntary(people, how, max(1, runs // 5), rng) for name, how in VOTES.items()
        },
        "difference": two_releases(people, spread, runs, rng),
    }


def population(path: Path, seed: int) -> tuple[Population, int]:
    """Learn from one half, and return the other half with its scores."""
    logs = pollex.read_logs(path)
    sides = split_conversations([c for c in logs if c.label is not Label.NONE], 0.5, seed)
    with tempfile.TemporaryDirectory() as folder:
        rubrics = learn_from(sides.train, RunOptions(Path(folder)))
        scores = (
            pollex.score(make_logs_of_conversations(sides.test), rubrics, store=folder).scores or ()
        )
    score = np.array([0.5 if one.probability is None else one.probability for one in scores])
    good = np.array([c.label is Label.POSITIVE for c in sides.test])
    return Population(good, score, measure_wording_signals(sides.test)), len(sides.train)


def at_random(
    people: Population,
    n: int,
    runs: int,
    rng: np.random.Generator,
    predict: Callable[[Bools, Bools], Floats],
) -> dict[str, float]:
    """Coverage and width of intervals from labels at random."""
    truth = people.good.mean()
    hits = []
    widths = []
    alone = []
    plain = []
    for _ in range(runs):
        labeled = people.draw(n, rng)
        rest = people.draw(REST, rng)
        known = np.isin(np.arange(len(people.good)), labeled)
        p = predict(known, people.good)
        found = estimate_share_from_random_labels(
            LabeledSample(people.good[labeled], p[labeled], p[rest])
        )
        classical = estimate_wilson_share(people.good[labeled], "labels alone")
        hits.append(found.low <= truth <= found.high)
        plain.append(classical.low <= truth <= classical.high)
        widths.append(found.high - found.low)
        alone.append(classical.high - classical.low)
    return {
        "coverage": float(np.mean(hits)),
        "classical_coverage": float(np.mean(plain)),
        "width": float(np.mean(widths) / np.mean(alone)),
        "label_is_worth": float((np.mean(alone) / np.mean(widths)) ** 2),
    }


def on_nothing(people: Population) -> Floats:
    """Everybody votes alike."""
    return np.ones(len(people.good))


def on_what_it_shows(people: Population) -> Floats:
    """Long and eventful conversations get twice to half as many votes."""
    strength = people.features - people.features.mean(axis=0)
    scale = people.features.std(axis=0)
    first = np.linalg.svd(strength[:, scale > 0] / scale[scale > 0], full_matrices=False)[0][:, 0]
    return np.asarray(2.0 ** np.clip(first / first.std(), -1, 1))


def on_satisfaction(people: Population) -> Floats:
    """Bad ones get twice as many votes."""
    return np.where(people.good, 1.0, 2.0)


VOTES = {"nothing": on_nothing, "what it shows": on_what_it_shows, "satisfaction": on_satisfaction}


def voluntary(
    people: Population, how: Callable[[Population], Floats], runs: int, rng: np.random.Generator
) -> dict[str, float]:
    """Bias and coverage from votes."""
    truth = people.good.mean()
    chance = how(people)
    rows: list[list[float]] = []
    for _ in range(runs):
        seen = people.draw(SEEN, rng)
        p = chance[seen] * VOTERS / chance[seen].sum()
        voted = rng.random(SEEN) < p
        good = people.good[seen]
        odds = np.log(people.score / (1 - people.score))[seen]
        x = np.column_stack([people.features[seen], odds])
        outcome = crossfit_answers(x, voted, good, rng, seen)
        propensity = crossfit_answers(x, np.ones(SEEN, dtype=bool), voted, rng, seen)
        adjusted = estimate_share_from_voluntary_votes(voted, good, outcome, propensity)
        bound = bound_share_for_voting_odds(voted, good, outcome, propensity, [2.0])[0]
        rows.append(
            [
                float(good[voted].mean() - truth),
                adjusted.value - truth,
                adjusted.low <= truth <= adjusted.high,
                bound.low <= truth <= bound.high,
                bound.high - bound.low,
            ]
        )
    names = ("voters_bias", "adjusted_bias", "adjusted_coverage", "bounds_coverage", "bounds_width")
    return {"runs": runs} | dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


def two_releases(
    people: Population, correlation: float, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Size and power of the difference between two releases, with and without scores."""
    share = float(people.good.mean())
    better = chances(people, DIFFERENCE)
    even = chances(people, 0.0)
    shift = float(better[people.good].sum()) - share
    with_scores = count_labels_for_difference(shift, share, correlation)
    without = count_labels_for_difference(shift, share)
    return {
        "difference": shift,
        "labels_a_side": with_scores,
        "labels_a_side_alone": without,
        "fewer": 1 - with_scores / without,
        "size": found_rate(people, even, with_scores, runs, rng, scores=True),
        "power": found_rate(people, better, with_scores, runs, rng, scores=True),
        "power_alone": found_rate(people, better, without, runs, rng, scores=False),
    }


def chances(people: Population, difference: float) -> Floats:
    """The chance of each conversation in a release that is better by `estimate_difference` `[conversation]`."""
    share = people.good.mean()
    good = np.where(
        people.good, (share + difference) / share, (1 - share - difference) / (1 - share)
    )
    return np.asarray(good / good.sum())


def found_rate(
    people: Population, second: Floats, n: int, runs: int, rng: np.random.Generator, *, scores: bool
) -> float:
    """How often the interval of a difference leaves 0 out."""
    rest = 20 * n
    hits = 0
    for _ in range(runs):
        sides = []
        for chance in (None, second):
            mine = rng.choice(len(people.good), n, p=chance)
            others = rng.choice(len(people.good), rest, p=chance)
            p = people.score if scores else np.full(len(people.good), 0.5)
            sides.append(LabeledSample(people.good[mine], p[mine], p[others]))
        found = estimate_share_difference_from_random_labels(*sides)
        hits += not found.low <= 0 <= found.high
    return hits / runs


def table_of(report: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a column a log."""
    columns = [column_of(log) for log in report.values()]
    heads = [f"{name} ({log['population']} conversations)" for name, log in report.items()]
    return table(["", *heads], [[row, *(column[row] for column in columns)] for row in columns[0]])


def column_of(log: Mapping[str, Any]) -> dict[str, str]:
    """Return one log's figures, by what they are of."""
    labels = log["labels"]
    runs = log["runs"]
    pair = log["difference"]
    column = {"share that is good": f"{log['share']:.3f}"}
    for how, row in log["at_random"].items():
        cell = f"{row['coverage']:.3f}, {row['width']:.3f}, {row['label_is_worth']:.2f}"
        column[
            f"{how}, {labels} labels, {runs} samples: coverage, width beside labels alone, a label is worth"
        ] = cell
    for how, row in log["voluntary"].items():
        column[f"votes on {how}, {row['runs']} samples: bias of voters, adjusted"] = (
            f"{row['voters_bias']:+.3f}, {row['adjusted_bias']:+.3f}"
        )
        column[f"… coverage of the adjusted interval, of bounds with factor 2 (votes on {how})"] = (
            f"{row['adjusted_coverage']:.2f}, {row['bounds_coverage']:.3f}"
        )
    column["two releases .05 apart: labels a side with scores, alone"] = (
        f"{pair['labels_a_side']:,}, {pair['labels_a_side_alone']:,}"
    )
    column["… size, power with scores, power alone"] = (
        f"{pair['size']:.3f}, {pair['power']:.3f}, {pair['power_alone']:.3f}"
    )
    return column


if __name__ == "__main__":
    raise SystemExit(main())
