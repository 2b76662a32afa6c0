"""Whether what leads holds: proven and likely rubrics on conversations that took no part in finding them.

    python benchmarks/evidence.py --data LOG [LOG …] [--halvings 10] [--shuffles 20]

Learns on one half of a log, with the halvings of `rubicon.py`, and looks at the leading rubrics on the other: how many
hold up (thumbs differ as the side says, Fisher's p < .05), how many went the other way, how many thumbs down they
cover, and the AUC of the whole set. Then it learns the whole log with its labels shuffled:
what is proven there is false. Shares have Wilson's interval; means that of Student's t over halvings, which share
conversations, so it is too narrow.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rubicon import dealt_as_before, learned
from scipy.stats import fisher_exact
from scipy.stats import t as student

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.headlines import thumbs_explained
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import ChosenRubric, Worth
from pollex.rubrics.worth import share_of, speaks_against

HOLDS_UP = 0.05


@dataclass
class Figures:
    """Shares as hits and misses, means as one value a halving, by name."""

    shares: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    means: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def rows(self) -> list[str]:
        """Lines of the table."""
        found = []
        for name, hits in self.shares.items():
            one = share_of(sum(hits), len(hits))
            found.append(f"{name:58} {one.value or 0:.2f} [{one.low or 0:.2f}, {one.high or 0:.2f}], n = {len(hits)}")
        for name, values in self.means.items():
            half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
            mean = float(np.mean(values))
            found.append(f"{name:58} {mean:.3f} [{mean - half:.3f}, {mean + half:.3f}], n = {len(values)}")
        return found


def main() -> None:
    """Print the table of every log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--halvings", type=int, default=10)
    parser.add_argument("--shuffles", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in given.data:
            logs, figures = dealt_as_before(read_logs(path)), Figures()
            for seed in range(given.halvings):
                halved(logs, seed, Path(folder), figures)
            for seed in range(given.shuffles):
                shuffled(logs, seed, Path(folder), figures)
            print("\n".join([Path(path).name, *figures.rows(), ""]), flush=True)


def halved(logs: Logs, seed: int, embeddings: Path, figures: Figures) -> None:
    """Learn on one half, and add what its rubrics come to on the other."""
    found, timing = learned(logs, DomainProfile.neutral(), LearnSettings(seed=seed, resamples=1), embeddings)
    rubrics = found.rubric_set
    leading = [one for one in rubrics.rubrics if one.headlined]
    for one in leading:
        figures.shares["leading rubrics that hold up on the other half"].append(holds_up(one))
        figures.shares["leading rubrics that went the other way"].append(
            one.worth is not None and speaks_against(one.worth, one.polarity)
        )
    if rubrics.reach and rubrics.reach.coverage.value is not None:
        figures.means["thumbs down in which a leading rubric holds"].append(rubrics.reach.coverage.value)
        figures.means["thumbs up in which one holds: false alarms"].append(rubrics.reach.false_alarms.value or 0.0)
    if rubrics.held_out and rubrics.held_out.auc.value is not None:
        figures.means["AUC of the set"].append(rubrics.held_out.auc.value)
    figures.means["rubrics in the set"].append(len(rubrics.rubrics))
    figures.means["of them leading"].append(len(leading))
    figures.means["thumbs explained by the first"].append(max(map(thumbs_explained, leading), default=0.0))
    figures.means["seconds"].append(timing.seconds)


def shuffled(logs: Logs, seed: int, embeddings: Path, figures: Figures) -> None:
    """Learn from labels that mean nothing, and add what is proven all the same."""
    rng = np.random.default_rng([seed, 11])
    labels = iter(rng.permutation([one.label.value for one in logs.learnable]).tolist())
    known = {one.id for one in logs.learnable}
    mixed = [one.model_copy(update={"label": Label(next(labels))}) if one.id in known else one for one in logs]
    settings = LearnSettings(seed=seed, test_fraction=0.0, resamples=0)
    found, _ = learned(replace(logs, conversations=mixed), DomainProfile.neutral(), settings, embeddings)
    stands = [one.stands for one in found.rubric_set.rubrics]
    figures.shares["labels shuffled: runs with anything proven"].append("proven" in stands)
    figures.shares["labels shuffled: runs with anything likely"].append("likely" in stands)


def holds_up(rubric: ChosenRubric) -> bool:
    """Tell whether thumbs on the other half differ as a rubric's side says, beyond chance."""
    worth = rubric.worth
    if worth is None or speaks_against(worth, rubric.polarity):
        return False
    return bool(fisher_exact(table_of(worth))[1] < HOLDS_UP)


def table_of(worth: Worth) -> list[list[int]]:
    """Count thumbs down and up where a rubric holds, and elsewhere."""
    rows = []
    for share in (worth.down_with, worth.down_without):
        n = share.n if share.value is not None else 0
        down = round((share.value or 0.0) * n)
        rows.append([down, n - down])
    return rows


if __name__ == "__main__":
    main()
