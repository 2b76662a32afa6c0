"""Whether what leads holds: proven and likely rubrics on conversations that took no part in finding them.

    python benchmarks/evidence.py --data LOG [LOG …] [--halvings 10] [--shuffles 100] [--before
    FOLDER] [--worlds …]

Chooses on one half of a log, all of it made anew, and looks at what leads on the other: how much
holds up (thumbs differ as the side says, Fisher's p < .05), how much goes the other way, how many
thumbs down it covers, and AUC of what is proven and likely alone, and of the set. Then whether
another seed proves the same families; and the whole log with its labels shuffled: what is proven
there is false, and the cross-fitted AUC should be that of guessing. Last, worlds whose truth is
known (`worlds/`, one module a kind), and with `--before`, a checkout of an earlier version, the
time of `pollex learn` beside its. Shares have Wilson's interval; means that of Student's t over
halvings, seeds or shuffles. Halvings share conversations, so theirs is too narrow.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from choosing import chosen_on
from rubicon import dealt_as_before
from scipy.stats import fisher_exact
from scipy.stats import t as student
from small_form import DEBUGGING, Findings, arguments_of, run, table
from worlds import WORLDS

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import split_conversations
from pollex.formats.read_logs import read_logs
from pollex.measures.classification import compute_auc
from pollex.rubrics.records import LIKELY_LEVEL, PROVEN_LEVEL
from pollex.rubrics.worth import compute_share_with_interval

HOLDS_UP = 0.05
SEEDS = 5

LEADING_HOLDS = "leading rubrics that hold up on the other half"
LEADING_TURNS = "leading rubrics that go the other way"
PROVEN_HOLDS = "of them proven: hold up on the other half"
SHUFFLED_PROVES = "labels shuffled: runs with anything proven"


@dataclass
class Figures:
    """Shares as hits and misses, means as one value a halving, by name."""

    shares: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    means: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def rows(self) -> dict[str, str]:
        """Return each figure with its interval and n, by its name."""
        rows = {}
        for name, hits in self.shares.items():
            one = compute_share_with_interval(sum(hits), len(hits))
            rows[name] = (
                f"{one.value or 0:.2f} [{one.low or 0:.2f}, {one.high or 0:.2f}], n = {len(hits)}"
            )
        for name, values in self.means.items():
            half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
            mean = float(np.mean(values))
            rows[name] = f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}], n = {len(values)}"
        return rows


def main() -> int:
    """Print the table of every log."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="*", default=[], metavar="LOG")
    parser.add_argument(
        "--worlds",
        nargs="*",
        choices=list(WORLDS),
        help="these alone; all if not given, none if no name follows",
    )
    parser.add_argument("--halvings", type=int, default=10)
    parser.add_argument("--shuffles", type=int, default=100)
    parser.add_argument(
        "--before",
        metavar="FOLDER",
        help="a checkout of an earlier version, for the time of learning",
    )
    return run(parser, measure_all, ["--data", DEBUGGING, "--halvings", "1", "--shuffles", "2"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    columns: dict[str, dict[str, str]] = {}
    pooled = Figures()
    for path in given.data:
        logs = dealt_as_before(read_logs(path))
        figures = Figures()
        study = StudiedLog(sorted(logs.learnable, key=lambda c: c.id), Embedder())
        for seed in range(given.halvings):
            halved(study, seed, figures)
        again(study, figures, 2 if given.quick else SEEDS)
        for seed in range(given.shuffles):
            shuffled(study, seed, figures)
        if given.before:
            timed(path, Path(given.before), figures)
        columns[Path(path).stem] = figures.rows()
        for name, hits in figures.shares.items():
            pooled.shares[name] += hits
    if columns:
        columns["all"] = pooled.rows()
    worlds = WORLDS if given.worlds is None else given.worlds
    outcomes = {name: measure(given.quick) for name, measure in WORLDS.items() if name in worlds}
    rows = [row for one in outcomes.values() for row in one.rows]
    texts = {"table": table_of(columns), "planted": table(["planted", "what is found"], rows)}
    figures = {"logs": columns, "worlds": {name: one.figures for name, one in outcomes.items()}}
    bars = {} if given.quick else bars_of(pooled)
    for outcome in outcomes.values():
        bars |= outcome.bars
    return Findings(texts, figures, bars)


BARS = {
    LEADING_HOLDS: (0.90, 1.0),
    LEADING_TURNS: (0.0, 0.01),
    SHUFFLED_PROVES: (0.0, 0.02),
}
"""Where the share of hits over all logs has to lie."""


def bars_of(pooled: Figures) -> dict[str, bool]:
    """Say whether the shares over all logs lie where they have to; each log alone has too few for that."""
    bars = {}
    for name, (least, most) in BARS.items():
        hits = pooled.shares[name]
        bars[name] = not hits or least <= sum(hits) / len(hits) <= most
    return bars


def table_of(columns: dict[str, dict[str, str]]) -> str:
    """Return a column a log; a log too small for a row has a dash there."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    return table(
        ["", *columns],
        [[name, *(column.get(name, "–") for column in columns.values())] for name in names],
    )


def halved(study: StudiedLog, seed: int, figures: Figures) -> None:
    """Choose on one half, and add what that comes to on the other."""
    up = flag_positive_labels(study.conversations)
    training = {c.id for c in split_conversations(study.conversations, 0.5, seed).train}
    rows = np.array([c.id in training for c in study.conversations])
    found = chosen_on(study, up, rows, seed)
    pool = found.weighed.pool
    truth = up[~rows]
    held = np.abs(pool.values[~rows]) > 5
    for one in found.leading:
        there = truth[held[:, one]]
        elsewhere = truth[~held[:, one]]
        table = [[int((~side).sum()), int(side.sum())] for side in (there, elsewhere)]
        gap = there.mean() - elsewhere.mean() if len(there) and len(elsewhere) else 0.0
        right = gap > 0 if found.weighed.sat[one] else gap < 0
        up_there = bool(right and fisher_exact(table)[1] < HOLDS_UP)
        figures.shares[LEADING_HOLDS].append(up_there)
        figures.shares[LEADING_TURNS].append(bool(gap and not right))
        if found.p[one] <= PROVEN_LEVEL:
            figures.shares[PROVEN_HOLDS].append(up_there)
    down = [one for one in found.leading if not found.weighed.sat[one]]
    covered = held[:, down].any(axis=1)
    sure = [one for one in found.order.tolist() if found.p[one] <= LIKELY_LEVEL]
    figures.means["thumbs down in which a leading rubric holds"].append(
        float(covered[~truth].mean())
    )
    figures.means["thumbs up in which one holds: false alarms"].append(float(covered[truth].mean()))
    figures.means["AUC of what is proven or likely alone"].append(
        compute_auc(pool.values[~rows][:, sure].sum(axis=1), truth)
    )
    figures.means["AUC of the set"].append(
        compute_auc(pool.values[~rows][:, found.order].sum(axis=1), truth)
    )
    figures.means["rubrics in the set"].append(len(found.order))
    figures.means["of them leading"].append(len(found.leading))


def again(study: StudiedLog, figures: Figures, seeds: int) -> None:
    """Add whether another seed proves the same families, from all labels, and the cross-fitted AUC of each."""
    up = flag_positive_labels(study.conversations)
    every = np.ones(len(study.conversations), dtype=bool)
    proven = []
    for seed in range(seeds):
        found = chosen_on(study, up, every, seed)
        families = {
            (name, bool(sat))
            for name, sat, p in zip(found.weighed.families, found.weighed.sat, found.p, strict=True)
            if p <= PROVEN_LEVEL
        }
        proven.append(families)
        figures.means["all labels: families proven"].append(len(families))
        figures.means["all labels: cross-fitted AUC"].append(compute_auc(found.fit.above, up))
        figures.means["all labels: leading rubrics"].append(len(found.leading))
    for one, other in combinations(proven, 2):
        figures.shares["families proven that another seed proves"] += [
            name in other for name in sorted(one)
        ]


def shuffled(study: StudiedLog, seed: int, figures: Figures) -> None:
    """Choose by labels that mean nothing, and add what is proven all the same."""
    up = np.random.default_rng([seed, 11]).permutation(flag_positive_labels(study.conversations))
    found = chosen_on(study, up, np.ones(len(up), dtype=bool), seed)
    figures.shares[SHUFFLED_PROVES].append(bool((found.p <= PROVEN_LEVEL).any()))
    figures.shares["labels shuffled: runs with anything likely"].append(
        bool((found.p <= LIKELY_LEVEL).any())
    )
    figures.shares["labels shuffled: runs in which anything leads"].append(bool(found.leading))
    figures.means["labels shuffled: cross-fitted AUC"].append(compute_auc(found.fit.above, up))


def timed(path: str, before: Path, figures: Figures) -> None:
    """Add the CPU time of `pollex learn` over that of an earlier version, in turns, nothing cached."""
    now = Path(__file__).parents[1]
    for _ in range(2):
        old, new = (seconds_of(path, root) for root in (before, now))
        figures.means["CPU time of learning over that of before"].append(new / old)


def seconds_of(path: str, root: Path) -> float:
    """Run `pollex learn` of a checkout in an empty folder: CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pollex",
            "learn",
            str(Path(path).resolve()),
            "--out",
            "rubrics.json",
        ]
        start = os.times()
        environment = os.environ | {"PYTHONPATH": str(root.resolve()), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)  # noqa: S603 - our own
        end = os.times()
    return end.children_user + end.children_system - start.children_user - start.children_system


if __name__ == "__main__":
    raise SystemExit(main())
