"""What a set that was learned elsewhere adds to few labels of one's own.

    python benchmarks/starter.py --data LOG OTHER [--labels 10 20 40 80] [--draws 12] [--json]

A set is learned from all labels of one log and is the starter on the other, both ways round. For
each draw, some labels of the log (at least two of each class) are learned from with the built-in
roles (no LLM), alone and with the starter; all other labeled conversations measure the AUC of the
probability. Starters whose labels were shuffled, another one in each draw, show what a meaningless
one costs: each by itself is right or wrong by chance. Draws share conversations: intervals are by
Student's t over draws, and narrower than of other logs.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plain_learning import learn_from
from scipy.stats import t as student
from small_form import FEW, OTHERS, Findings, arguments_of, run, table

import pollex
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels
from pollex.formats.read_logs import make_logs_of_conversations
from pollex.measures.classification import compute_auc
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import RunOptions

KINDS = ("alone", "starter", "both", "meaningless")


def main() -> int:
    """Print one table a direction."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs=2, required=True, type=Path, help="two logs with thumbs")
    parser.add_argument("--labels", nargs="+", type=int, default=[10, 20, 40, 80])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument(
        "--one-way", action="store_true", help="only the first log with the other's set"
    )
    parser.add_argument(
        "--no-meaningless", action="store_true", help="without starters of shuffled labels"
    )
    quick = [
        "--data",
        FEW,
        OTHERS,
        "--labels",
        "12",
        "--draws",
        "1",
        "--one-way",
        "--no-meaningless",
    ]
    return run(parser, measure_all, quick)


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), KINDS[:-1] if given.no_meaningless else KINDS)
        logs = {path.stem: labelled(path) for path in given.data}
        names = list(logs)
        report = {
            f"{here} with {there}": bench.measure(
                logs[here], logs[there], given.labels, given.draws
            )
            for here, there in (names, names[::-1])[: 1 if given.one_way else 2]
        }
    reached = [np.mean(row["both"]) for by_size in report.values() for row in by_size.values()]
    return Findings(
        {"table": table_of(report)},
        report,
        {"AUC with a starter is above chance": min(reached) > 0.5},
    )


def labelled(path: Path) -> list[Conversation]:
    """The conversations with a thumb."""
    return [c for c in pollex.read_logs(path) if c.label is not Label.NONE]


class Bench:
    """Learning and scoring in one store, whose embeddings are made once."""

    def __init__(self, folder: Path, kinds: Sequence[str] = KINDS) -> None:
        self.run = RunOptions(folder)
        self.kinds = kinds

    def measure(
        self, here: list[Conversation], there: list[Conversation], sizes: Sequence[int], draws: int
    ) -> dict[int, dict[str, list[float]]]:
        """AUC of each kind by number of labels, a value a draw."""
        rng = np.random.default_rng(0)
        starter = self.learned(there)
        known = self.scores(here, starter)
        found: dict[int, dict[str, list[float]]] = {
            size: {kind: [] for kind in self.kinds} for size in sizes
        }
        helpers = {"alone": None, "both": starter}
        for draw in range(draws):
            if "meaningless" in self.kinds:
                helpers["meaningless"] = self.learned(shuffled(there, rng))
            for size in sizes:
                picked = drawn(
                    flag_positive_labels(here), size, np.random.default_rng([size, draw])
                )
                mine, rest = (
                    [c for c, own in zip(here, picked, strict=True) if own is side]
                    for side in (True, False)
                )
                ranked = {
                    kind: self.scores(rest, self.learned(mine, helper))
                    for kind, helper in helpers.items()
                }
                ranked["starter"] = known
                for kind, scores in ranked.items():
                    column = np.array([scores[c.id] for c in rest], dtype=float)
                    found[size][kind].append(compute_auc(column, flag_positive_labels(rest)))
        return found

    def learned(
        self, conversations: list[Conversation], starter: RubricSet | None = None
    ) -> RubricSet:
        """A set learned from all of these."""
        return learn_from(conversations, self.run, starter=starter)

    def scores(
        self, conversations: list[Conversation], rubric_set: RubricSet
    ) -> dict[str, float | None]:
        """Probabilities by id."""
        scores = (
            pollex.score(
                make_logs_of_conversations(conversations), rubric_set, store=self.run.store
            ).scores
            or ()
        )
        return {score.conversation_id: score.probability for score in scores}


def drawn(good: np.ndarray[Any, Any], size: int, rng: np.random.Generator) -> list[bool]:
    """Which labels are drawn: by chance, at least two of each class."""
    while True:
        picked = np.zeros(len(good), dtype=bool)
        picked[rng.permutation(len(good))[:size]] = True
        if min(good[picked].sum(), (~good)[picked].sum()) >= 2:
            return [bool(one) for one in picked]


def shuffled(conversations: Sequence[Conversation], rng: np.random.Generator) -> list[Conversation]:
    """The conversations with their labels in another order."""
    labels = rng.permutation([c.label for c in conversations])
    return [
        c.model_copy(update={"label": Label(label)})
        for c, label in zip(conversations, labels, strict=True)
    ]


def gain(values: Sequence[float], alone: Sequence[float]) -> tuple[float, float]:
    """Mean difference and half its 95 % interval over draws."""
    differences = np.array(values) - np.array(alone)
    n = len(differences)
    return float(differences.mean()), float(
        student.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    )


def table_of(report: Mapping[str, Mapping[int, Mapping[str, Sequence[float]]]]) -> str:
    """Return a row a direction and number of labels: AUC, and the gain over one's own labels alone."""
    rows = []
    for direction, by_size in report.items():
        for size, row in by_size.items():
            cells = [direction, size, len(row["alone"]), f"{np.mean(row['alone']):.3f}"]
            for kind in list(row)[1:]:
                mean, half = gain(row[kind], row["alone"])
                cells.append(f"{np.mean(row[kind]):.3f} ({mean:+.3f} ± {half:.3f})")
            rows.append(cells)
    columns = {"starter": "starter alone", "both": "both", "meaningless": "a meaningless one"}
    shown = [title for kind, title in columns.items() if kind in row]
    return table(("log with starter of", "labels", "draws", "own labels alone", *shown), rows)


if __name__ == "__main__":
    raise SystemExit(main())
