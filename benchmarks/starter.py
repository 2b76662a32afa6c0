"""What a set that was learned elsewhere adds to few labels of one's own.

    python benchmarks/starter.py --data LOG OTHER [--labels 10 20 40 80] [--draws 12] [--json]

A set is learned from all labels of one log and is the starter on the other, both ways round. For each draw, some labels
of the log (at least two of each class) are learned from with the built-in roles (no LLM), alone and stacked with the
starter; all other labeled conversations measure the AUC. Eight starters whose labels were shuffled show what a
meaningless one costs: each by itself is right or wrong by chance, so all are stacked with every draw, and the interval
is of draws and shuffles. Draws share conversations: intervals are by Student's t, and narrower than of other logs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import pollex
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, positives
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import logs_of
from pollex.graphs.context import NullProgress
from pollex.measures.classification import auc
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.starter import StarterRecord
from pollex.services.learn import learn
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.starter import as_set, honest_netsats, record_of, with_starter
from pollex.store.store import Store

SHUFFLES = 8
MEANINGLESS = tuple(f"shuffled {n}" for n in range(1, SHUFFLES + 1))
KINDS = ("alone", "starter", "stack", *MEANINGLESS)


def main() -> None:
    """Print one table a direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs=2, required=True, type=Path, help="two logs with thumbs")
    parser.add_argument("--labels", nargs="+", type=int, default=[10, 20, 40, 80])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        logs = {path.stem: labelled(path) for path in given.data}
        names = list(logs)
        report = {
            f"{here} with {there}": bench.measure(logs[here], logs[there], given.labels, given.draws)
            for here, there in (names, names[::-1])
        }
    print(json.dumps(report, indent=1) if given.json else "\n\n".join(in_words(*item) for item in report.items()))


def labelled(path: Path) -> list[Conversation]:
    """The conversations with a thumb."""
    return [c for c in pollex.read_logs(path) if c.label is not Label.NONE]


class Bench:
    """Learning and scoring in one store, whose embeddings are made once."""

    def __init__(self, folder: Path) -> None:
        self.run = RunOptions(folder)

    def measure(
        self, here: list[Conversation], there: list[Conversation], sizes: Sequence[int], draws: int
    ) -> dict[int, dict[str, list[float]]]:
        """AUC of each kind by number of labels, a value a draw."""
        rng = np.random.default_rng(0)
        starters = [self.learned(there)[0], *(self.learned(shuffled(there, rng))[0] for _ in range(SHUFFLES))]
        records = [record_of(found, "starter") for found in starters]
        known = [self.netsats(here, as_set(*pair)) for pair in zip(records, starters, strict=True)]
        found: dict[int, dict[str, list[float]]] = {}
        for size in sizes:
            which = ("stack", *MEANINGLESS)
            picked = [dict(zip(which, of, strict=True)) for of in (records, known)]
            rows = [self.draw(here, size, *picked, np.random.default_rng([size, n])) for n in range(draws)]
            found[size] = {kind: [row[kind] for row in rows] for kind in KINDS}
        return found

    def draw(
        self,
        here: list[Conversation],
        size: int,
        records: Mapping[str, StarterRecord],
        known: Mapping[str, Mapping[str, Score]],
        rng: np.random.Generator,
    ) -> dict[str, float]:
        """AUC of each kind on all conversations whose labels were not drawn."""
        picked = drawn(positives(here), size, rng)
        mine, others = ([c for c, chosen in zip(here, picked, strict=True) if chosen is side] for side in (True, False))
        own, honest = self.learned(mine)
        scores = self.netsats(here, own)
        good, rest = positives(others), [c.id for c in others]
        values = {
            "alone": [scores[id_].netsat for id_ in rest],
            "starter": [known["stack"][id_].netsat for id_ in rest],
        }
        log = logs_of(
            [
                c if chosen else c.model_copy(update={"label": Label.NONE})
                for c, chosen in zip(here, picked, strict=True)
            ]
        )
        for kind, record in records.items():
            sources = {True: known[kind], False: scores}

            def scoring(some: Logs, rubric_set: RubricSet, sources: Any = sources) -> list[Score]:
                of_starter = rubric_set.rubrics[0].id.startswith("starter-")
                return [sources[of_starter][c.id] for c in some]

            stack = with_starter(own, record, log, honest, scoring).starter
            assert stack is not None, "it was just put there"
            both = [np.array([found[id_].netsat for id_ in rest]) for found in (scores, known[kind])]
            values[kind] = stack.stack.probability(*both).tolist()
        return {kind: auc(np.array(column, dtype=float), good) for kind, column in values.items()}

    def learned(self, conversations: list[Conversation]) -> tuple[RubricSet, dict[str, float]]:
        """A set learned from all of these, and the NetSATs by rubrics chosen without each."""
        settings = LearnSettings(test_fraction=0.0, minimum=2, resamples=0)
        options: dict[str, Any] = {"reading": ReadOptions(), "run": self.run, "model": ModelOptions()}
        result = learn(
            logs_of(conversations),
            out=None,
            domain=None,
            rubrics_from=None,
            settings=settings,
            progress=NullProgress(),
            **options,
        )
        with Store.open(self.run.store, read_only=True) as store:
            return result.rubrics, honest_netsats(store, result.run)

    def netsats(self, conversations: list[Conversation], rubric_set: RubricSet) -> dict[str, Score]:
        """Scores by id."""
        plain = replace_calibrator(rubric_set)
        scores = pollex.score(logs_of(conversations), plain, store=self.run.store).scores or ()
        return {score.conversation_id: score for score in scores}


def replace_calibrator(rubric_set: RubricSet) -> RubricSet:
    """The set without its model of probabilities, which nobody asks for here."""
    return rubric_set.model_copy(update={"calibrator": None})


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
    return [c.model_copy(update={"label": Label(label)}) for c, label in zip(conversations, labels, strict=True)]


def gain(values: Sequence[Sequence[float]], alone: Sequence[float]) -> tuple[float, float]:
    """Mean difference and half its 95 % interval, of starters and draws.

    Args:
        values: AUC `[starter][draw]`.
    """
    differences = np.array(values) - np.array(alone)
    means = [differences.mean(axis=axis) for axis in (0, 1)]
    halves = [student.ppf(0.975, len(one) - 1) * one.std(ddof=1) / np.sqrt(len(one)) for one in means if len(one) > 1]
    return float(differences.mean()), float(np.sqrt(np.square(halves).sum()))


def in_words(direction: str, by_size: Mapping[int, Mapping[str, Sequence[float]]]) -> str:
    """One direction's table."""
    lines = [f"{direction}'s set as starter; AUC, and gain over in-domain alone"]
    for size, row in by_size.items():
        parts = [f"{size:>4} labels ({len(row['alone'])} draws): alone {np.mean(row['alone']):.3f}"]
        for name, kinds in (("starter", ("starter",)), ("stack", ("stack",)), ("shuffled", MEANINGLESS)):
            found = [row[kind] for kind in kinds]
            mean, half = gain(found, row["alone"])
            parts.append(f"{name} {np.mean(found):.3f} ({mean:+.3f} ± {half:.3f})")
        lines.append("; ".join(parts))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
