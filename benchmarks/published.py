"""SPUR's protocol on its two public logs, beside the figures that were published.

    python benchmarks/published.py --data FOLDER [--splits 5] [--json]

FOLDER has turns-sgd.jsonl and turns-mwoz.jsonl: dialogues with people's ratings (1 to 5) of user
turns. Labels as in Lin et al. 2024, arXiv:2403.12388v2, appendix B: a dialogue is satisfied where
all its user turns that are not neutral are rated over 3, dissatisfied where all are under 3; where
both occur, it has the label of the first of them and is cut before the first of the other kind. 5 %
are learned from, 80 % tested on. F1 is the mean over classes weighted by size.

What differs: a turn's rating is the mean of its raters; dialogues without a label (all turns
neutral) are left out of the test, where the paper's three classes keep them. The built-in roles (no
LLM) learn here; the published methods ask GPT-4, but for ASAP, which was trained.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plain_learning import learn_from
from scipy.stats import t as student
from sklearn.metrics import f1_score
from small_form import BIKES, Findings, arguments_of, run, table

import pollex
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.formats.read_logs import make_logs_of_conversations, read_logs
from pollex.runs.options import RunOptions

NEUTRAL = 3
LOGS = {"turns-mwoz": "MultiWOZ", "turns-sgd": "SGD"}
PUBLISHED = {
    "MultiWOZ": {"SPUR (GPT-4)": 59.0, "GPT-4 zero-shot": 53.6, "ASAP": 52.5},
    "SGD": {"SPUR (GPT-4)": 72.6, "GPT-4 zero-shot": 71.9, "ASAP": 66.3},
}
LEARN = 0.05
TEST = 0.8
MADE_OF = 2
"""A log that is made has one of so many conversations of the shop."""


def main() -> int:
    """Print a line a log."""
    parser = arguments_of(__doc__)
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="made from the bundled shop if left out"
    )
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--logs", nargs="+", choices=list(LOGS.values()), default=list(LOGS.values())
    )
    return run(parser, measure_all, ["--splits", "2", "--logs", "SGD"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        data = given.data or made(Path(folder))
        report = {
            title: measured(data / f"{name}.jsonl", given.splits, RunOptions(Path(folder)))
            for name, title in LOGS.items()
            if title in given.logs
        }
    least = min(min(row["f1_weighted"]) for row in report.values())
    return Findings(
        {"table": table_of(report)}, report, {"F1 of every split is above 30": least > 30}
    )


def measured(path: Path, splits: int, run: RunOptions) -> dict[str, Any]:
    """Weighted F1 of each split."""
    dialogues = [
        labelled(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    known = [one for one in dialogues if one.label is not Label.NONE]
    found = [
        split_figures(dialogues, np.random.default_rng(number), run) for number in range(splits)
    ]
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
    first = int(LEARN * len(order))
    last = len(order) - int(TEST * len(order))
    train = [one for one in (dialogues[i] for i in order[:first]) if one.label is not Label.NONE]
    test = [one for one in (dialogues[i] for i in order[last:]) if one.label is not Label.NONE]
    rubrics = learn_from(train, run)
    scores = pollex.score(make_logs_of_conversations(test), rubrics, store=run.store).scores or ()
    truth = [one.label is Label.POSITIVE for one in test]
    said = [score.decision == "positive" for score in scores]
    return 100 * float(f1_score(truth, said, average="weighted")), len(train), len(test)


def labelled(row: dict[str, Any]) -> Conversation:
    """A dialogue with its label, cut where the ratings of its turns first contradict each other."""
    turns = []
    label = Label.NONE
    for message in row["messages"]:
        rating = statistics.mean(message["ratings"]) if message.get("ratings") else NEUTRAL
        if rating != NEUTRAL:
            said = Label.POSITIVE if rating > NEUTRAL else Label.NEGATIVE
            if label is not Label.NONE and said is not label:
                break
            label = said
        turns.append(Turn(role=message["role"], content=message["content"]))
    return Conversation(id=str(row["id"]), turns=tuple(turns), label=label)


def table_of(report: dict[str, Any]) -> str:
    """Return F1 weighted by class of each log, with its interval over splits, beside the published ones."""
    others = sorted({name for published in PUBLISHED.values() for name in published})
    rows = []
    for title, figures in report.items():
        values = np.array(figures["f1_weighted"])
        half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        tested = f"{title} ({statistics.mean(figures['tested']):.0f} tested)"
        published = [PUBLISHED[title].get(name, "–") for name in others]
        rows.append(
            [
                tested,
                statistics.mean(figures["learned_from"]),
                f"{values.mean():.1f} ± {half:.1f}",
                *published,
            ]
        )
    return table(["log", "labels to learn from", "built-in (no LLM)", *others], rows)


def made(folder: Path) -> Path:
    """Write logs of this shape from the bundled shop: a thumb up rates each of the user's turns 5, a thumb down 1."""
    for place, name in enumerate(LOGS):
        lines = []
        for conversation in list(read_logs(BIKES))[place::MADE_OF]:
            rating = 5 if conversation.label is Label.POSITIVE else 1
            turns = [
                {"role": turn.role, "content": turn.content}
                | ({"ratings": [rating]} if turn.role == "user" else {})
                for turn in conversation.turns
            ]
            lines.append(json.dumps({"id": conversation.id, "messages": turns}))
        (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
