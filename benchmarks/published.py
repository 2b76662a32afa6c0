"""SPUR's protocol on its two public logs, beside the figures that were published.

    python benchmarks/published.py --data FOLDER [--splits 5] [--json]

FOLDER has turns-sgd.jsonl and turns-mwoz.jsonl: dialogues with people's ratings (1 to 5) of user turns. Labels as in
Lin et al. 2024, arXiv:2403.12388v2, appendix B: a dialogue is satisfied where all its user turns that are not neutral
are rated over 3, dissatisfied where all are under 3; where both occur, it has the label of the first of them and is cut
before the first of the other kind. 5 % are learned from, 80 % tested on. F1 is the mean over classes weighted by size.

What differs: a turn's rating is the mean of its raters; dialogues without a label (all turns neutral) are left out of
the test, where the paper's three classes keep them. The built-in roles (no LLM) learn here; the published methods ask
GPT-4, but for ASAP, which was trained.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.metrics import f1_score

import pollex
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import logs_of
from pollex.graphs.context import NullProgress
from pollex.rubrics.learning.settings import LearnSettings
from pollex.services.learn import learn
from pollex.services.options import ModelOptions, RunOptions

NEUTRAL = 3
LOGS = {"turns-mwoz": "MultiWOZ", "turns-sgd": "SGD"}
PUBLISHED = {
    "MultiWOZ": {"SPUR (GPT-4)": 59.0, "GPT-4 zero-shot": 53.6, "ASAP": 52.5},
    "SGD": {"SPUR (GPT-4)": 72.6, "GPT-4 zero-shot": 71.9, "ASAP": 66.3},
}
LEARN, TEST = 0.05, 0.8


def main() -> None:
    """Print a line a log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = {
            title: measured(given.data / f"{name}.jsonl", given.splits, RunOptions(Path(folder)))
            for name, title in LOGS.items()
        }
    print(json.dumps(report, indent=1) if given.json else "\n".join(in_words(*item) for item in report.items()))


def measured(path: Path, splits: int, run: RunOptions) -> dict[str, Any]:
    """Weighted F1 of each split."""
    dialogues = [labelled(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    known = [one for one in dialogues if one.label is not Label.NONE]
    found = [split_figures(dialogues, np.random.default_rng(number), run) for number in range(splits)]
    return {
        "f1_weighted": [one[0] for one in found],
        "learned_from": [one[1] for one in found],
        "tested": [one[2] for one in found],
        "satisfied": sum(one.label is Label.POSITIVE for one in known) / len(known),
        "without_label": len(dialogues) - len(known),
    }


def split_figures(
    dialogues: Sequence[Conversation], rng: np.random.Generator, run: RunOptions
) -> tuple[float, int, int]:
    """Weighted F1, labels learned from, and dialogues tested on."""
    order = rng.permutation(len(dialogues))
    first, last = int(LEARN * len(order)), len(order) - int(TEST * len(order))
    train = [one for one in (dialogues[i] for i in order[:first]) if one.label is not Label.NONE]
    test = [one for one in (dialogues[i] for i in order[last:]) if one.label is not Label.NONE]
    rubrics = learn(
        logs_of(train),
        out=None,
        domain=None,
        rubrics_from=None,
        settings=LearnSettings(test_fraction=0.0, minimum=2, stability=False),
        reading=ReadOptions(),
        run=run,
        model=ModelOptions(),
        progress=NullProgress(),
    ).rubrics
    scores = pollex.score(test, rubrics, store=run.store).scores or ()
    truth = [one.label is Label.POSITIVE for one in test]
    said = [score.decision == "positive" for score in scores]
    return 100 * float(f1_score(truth, said, average="weighted")), len(train), len(test)


def labelled(row: dict[str, Any]) -> Conversation:
    """A dialogue with its label, cut where the ratings of its turns first contradict each other."""
    turns, label = [], Label.NONE
    for message in row["messages"]:
        rating = statistics.mean(message["ratings"]) if message.get("ratings") else NEUTRAL
        if rating != NEUTRAL:
            said = Label.POSITIVE if rating > NEUTRAL else Label.NEGATIVE
            if label is not Label.NONE and said is not label:
                break
            label = said
        turns.append(Turn(role=message["role"], content=message["content"]))
    return Conversation(id=str(row["id"]), turns=tuple(turns), label=label)


def in_words(title: str, found: dict[str, Any]) -> str:
    """A log's figure with its interval over splits, and the published ones."""
    values = np.array(found["f1_weighted"])
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    others = ", ".join(f"{name} {value}" for name, value in PUBLISHED[title].items())
    return (
        f"{title}: F1 weighted {values.mean():.1f} ± {half:.1f} ({len(values)} splits; learned from "
        f"{statistics.mean(found['learned_from']):.0f} labels, tested on {statistics.mean(found['tested']):.0f}, "
        f"{found['satisfied']:.0%} satisfied, {found['without_label']} without a label). Published: {others}."
    )


if __name__ == "__main__":
    main()
