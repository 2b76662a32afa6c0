"""How many rubrics are learned again with five labels more, and with another seed.

    python benchmarks/stability.py --data LOG [LOG …] [--draws 10] [--labels 5]
    python benchmarks/stability.py --data LOG [LOG …] --flipped 0.05 --draws 20

Learns with the whole `learn` graph and the built-in roles, as `pollex learn` does by default:
extraction, scale and choice are made anew each time. First with all labels and with `--labels`
fewer, drawn at random, by one seed; then with seeds 0 and 1, 2 and 3 and so on, whose halves of the
log differ. A rubric counts as learned again where the other set has the same event on the same
topic, the same signal or the same phrase on the same side, or, of clusters of turns, a sentence
that the deduplicator would merge.

With `--flipped` only this is measured: a set of half of the labels as they are beside sets of the
same half of which a share, drawn at random, is turned round; and the AUC of each on the other half,
by the labels as they are. Beside it stands what the report of the first one says of noise.

Printed are the figure of the first pair, and mean and 95 % t-interval over pairs. Pairs share
conversations, so that these intervals are of draws of labels and seeds, not of other logs.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rubicon import learned
from scipy.stats import t as student
from small_form import FEW, Findings, arguments_of, run

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import parse_event_source
from pollex.agents.embedded.roles import MIN_COSINE_OF_DUPLICATES
from pollex.calibration import thumbs
from pollex.calibration.candidates import CALIBRATION_NETWORK_NAME
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.measures.classification import compute_auc
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet

KINDS = ("labels", "seed")
OF = 20
"""Rubrics that shares are told of."""

NETSAT = "NetSAT"
"""What gives the probability, which nothing here looks at: the one that is fitted soonest."""


def main() -> int:
    """Print what remains of the rubrics of every log."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--draws", type=int, default=10, help="pairs of sets of each kind")
    parser.add_argument("--labels", type=int, default=5, help="labels that one set of a pair lacks")
    parser.add_argument(
        "--flipped", type=float, default=0.0, help="share of the labels that are turned round"
    )
    parser.add_argument(
        "--embeddings", help="folder of cached embeddings; an empty temporary one if left out"
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="what the sets of a pair differ by"
    )
    return run(parser, measure_all, ["--data", FEW, "--draws", "1", "--kinds", "seed"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in given.data:
            folder = Path(given.embeddings or scratch)
            if given.flipped:
                found = measure_noise(path, given.draws, given.flipped, folder)
                print(noise_in_words(found))
                reports.append(found | {"rubrics": [found["rubrics"]]})
                continue
            report = measured(path, given.draws, given.labels, given.kinds, folder)
            print("\n".join(in_words(report)))
            reports.append(report)
    return Findings(
        figures=reports,
        bars={"every set has rubrics": all(min(one["rubrics"]) > 0 for one in reports)},
    )


def measured(
    path: str, draws: int, labels: int, kinds: Sequence[str], embeddings: Path
) -> dict[str, Any]:
    """Learn all pairs of sets from one log, and compare them."""
    logs = read_logs(path)
    embedder = Embedder(cache=embeddings)

    def by(kept: Logs, seed: int) -> RubricSet:
        settings = LearnSettings(seed=seed, stability=False, probability=NETSAT)
        return learned(kept, DomainProfile.neutral(), settings, embeddings, embedder=embedder)[
            0
        ].rubric_set

    seeds = [by(logs, seed) for seed in range(2 * draws if "seed" in kinds else 1)]
    pairs = {}
    if "labels" in kinds:
        fewer = [by(without(logs, labels, np.random.default_rng(draw)), 0) for draw in range(draws)]
        pairs[f"{labels} labels fewer"] = [(seeds[0], other) for other in fewer]
    if "seed" in kinds:
        pairs["another seed"] = list(zip(seeds[::2], seeds[1::2], strict=True))
    return {
        "log": Path(path).name,
        "labels": len(logs.learnable),
        "rubrics": [len(one.rubrics) for one in seeds],
        "pairs": {
            name: [compared(*pair, embedder) for pair in found] for name, found in pairs.items()
        },
    }


def measure_noise(path: str, draws: int, share: float, embeddings: Path) -> dict[str, Any]:
    """Learn from labels as they are, and from draws of which a share is turned round; compare sets and AUCs."""
    logs = read_logs(path)
    embedder = Embedder(cache=embeddings)
    known = {conversation.id: conversation.label is Label.POSITIVE for conversation in logs}

    def learned_by(labeled: Logs) -> Learned:
        asked = LearnSettings(stability=False, probability=NETSAT)
        with plain_probability():
            return learned(labeled, DomainProfile.neutral(), asked, embeddings, embedder=embedder)[
                0
            ]

    def auc_by_true_labels(run: Learned) -> float:
        unseen = [
            score for score in run.scores if score.side == "held_out" and score.netsat is not None
        ]
        return compute_auc(
            np.array([one.netsat for one in unseen]),
            np.array([known[one.conversation_id] for one in unseen]),
        )

    plain = learned_by(logs)
    noisy = []
    for draw in range(draws):
        noisy.append(learned_by(with_flipped(logs, share, np.random.default_rng([draw, 5]))))
        print(f"draw {draw + 1} of {draws}", file=sys.stderr)
    sets = [run.rubric_set for run in noisy]
    return {
        "log": Path(path).name,
        "labels": len(logs.learnable),
        "flipped": share,
        "rubrics": len(plain.rubric_set.rubrics),
        "reported": [note for note in plain.rubric_set.notes if "turned round" in note],
        "again": [sum(same(plain.rubric_set.rubrics, other.rubrics, embedder)) for other in sets],
        "auc": auc_by_true_labels(plain),
        "aucs": [auc_by_true_labels(run) for run in noisy],
    }


@contextmanager
def plain_probability() -> Iterator[None]:
    """Compare no network as a model of the probability, which nothing here looks at: it takes most of the time."""
    every = thumbs.make_candidates
    thumbs.make_candidates = lambda signs: {
        name: one for name, one in every(signs).items() if name != CALIBRATION_NETWORK_NAME
    }
    try:
        yield
    finally:
        thumbs.make_candidates = every


def with_flipped(logs: Logs, share: float, rng: np.random.Generator) -> Logs:
    """Return the logs with a share of the labels turned round, drawn at random."""
    ids = sorted(conversation.id for conversation in logs.learnable)
    drawn = {
        ids[place] for place in rng.choice(len(ids), max(1, round(share * len(ids))), replace=False)
    }
    other = {Label.POSITIVE: Label.NEGATIVE, Label.NEGATIVE: Label.POSITIVE}
    turned = [
        conversation.model_copy(update={"label": other[conversation.label]})
        if conversation.id in drawn
        else conversation
        for conversation in logs
    ]
    return replace(
        logs, conversations=turned, counts=Counter(conversation.label for conversation in turned)
    )


def noise_in_words(found: Mapping[str, Any]) -> str:
    """Format what noise of labels does to one log, with 95 % t-intervals over draws."""
    shares = [again / found["rubrics"] for again in found["again"]]
    aucs = found["aucs"]
    lines = [
        f"{found['log']}: half of {found['labels']} labels, {found['flipped']:.0%} turned round, {len(shares)} draws",
        f"rubrics learned again, all anew, of {found['rubrics']}: {interval_of(shares)}",
        f"AUC on the other half by its true labels: {found['auc']:.3f} without noise, with it {interval_of(aucs)},",
        f"  from {min(aucs):.3f} to {max(aucs):.3f}",
        *(f"its report: {note}" for note in found["reported"]),
    ]
    return "\n".join(lines)


def interval_of(values: Sequence[float]) -> str:
    """Format a mean with its 95 % t-interval and the standard deviation of draws."""
    array = np.array(values)
    half = student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    mean = array.mean()
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}], sd of draws {array.std(ddof=1):.3f}"


def without(logs: Logs, labels: int, rng: np.random.Generator) -> Logs:
    """Return the logs without so many conversations with a label, drawn at random."""
    ids = sorted(conversation.id for conversation in logs.learnable)
    gone = {ids[place] for place in rng.choice(len(ids), labels, replace=False)}
    kept = [conversation for conversation in logs if conversation.id not in gone]
    return replace(
        logs, conversations=kept, counts=Counter(conversation.label for conversation in kept)
    )


def compared(first: RubricSet, second: RubricSet, embedder: Embedder) -> dict[str, list[int]]:
    """Count rubrics of the first set that the second has, and all of the first, by list."""
    there = same(first.rubrics, second.rubrics, embedder)
    lists = {
        "all": [True] * len(there),
        "headline": [rubric.headlined for rubric in first.rubrics],
        "how users sound": [not rubric.headlined for rubric in first.rubrics],
    }
    return {
        name: [sum(found and one for found, one in zip(there, mine, strict=True)), sum(mine)]
        for name, mine in lists.items()
    }


def same(first: Sequence[Rubric], second: Sequence[Rubric], embedder: Embedder) -> list[bool]:
    """Tell of each rubric of the first set whether the second has it."""
    known = {(rubric.polarity, what(rubric)) for rubric in second}
    near = (
        embedder.embed([one.text for one in first]) @ embedder.embed([one.text for one in second]).T
        >= MIN_COSINE_OF_DUPLICATES
    )
    return [
        (one.polarity, what(one)) in known
        or any(
            near[i, j] and is_cluster(one) and is_cluster(other) and one.polarity == other.polarity
            for j, other in enumerate(second)
        )
        for i, one in enumerate(first)
    ]


def what(rubric: Rubric) -> str:
    """Return what a rubric is about: its event with topic and detail, or else its source."""
    found = parse_event_source(rubric.source)
    if found is None:
        return rubric.text if is_cluster(rubric) else rubric.source
    topic = found.topics.topics[found.event.topic].name if found.event.topic >= 0 else ""
    return " ".join((found.event.pattern, topic, found.event.detail))


def is_cluster(rubric: Rubric) -> bool:
    """Tell whether a rubric is of turns that are alike."""
    return rubric.source.startswith("turns:")


def summarized(counts: Sequence[Sequence[int]]) -> tuple[float, float, float, float]:
    """Return the first share, the mean share and its 95 % interval, of so many as `OF`."""
    shares = OF * np.array([hits / n for hits, n in counts if n])
    half = (
        student.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / np.sqrt(len(shares))
        if len(shares) > 1
        else 0.0
    )
    if not len(shares):
        return 0.0, 0.0, 0.0, 0.0
    return (
        float(shares[0]),
        float(shares.mean()),
        float(shares.mean() - half),
        float(shares.mean() + half),
    )


def in_words(report: Mapping[str, Any]) -> list[str]:
    """Format the table of one log."""
    sizes = report["rubrics"]
    lines = [
        f"\n{report['log']}: {report['labels']} labels, sets of {min(sizes)} to {max(sizes)} rubrics"
    ]
    for name, pairs in report["pairs"].items():
        lines.append(f"{name}, of {OF} rubrics remain ({len(pairs)} pairs):")
        for kind in pairs[0]:
            counts = [pair[kind] for pair in pairs]
            first, mean, low, high = summarized(counts)
            hits, n = (sum(column) for column in zip(*counts, strict=True))
            lines.append(
                f"  {kind:<16} first pair {first:4.1f}; mean {mean:4.1f} [{low:.1f}, {high:.1f}]; {hits} of {n}"
            )
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
