"""What it costs to score a conversation without a model, all texts new: CPU, stages and memory, beside other ways.

    python benchmarks/scoring.py --data sgd.jsonl [--rubrics rubrics.json] [--sizes 2000 6000 20000]
    [--workers 1]

Learns a set on the log unless one is given, writes logs of several sizes in which a word of eight
in every turn was exchanged, so that hardly any text comes twice, and runs `pollex score` on each,
in a process of its own. A cost a conversation is the difference of two sizes, so that starting and
loading are not in it. Prints in one run:

- CPU a conversation and conversations a CPU second of `score`, with the peak memory of each size
- shares of the stages, worked out one after the other in this process
- the same job done otherwise: the embedding of all turns alone, sentence-transformers with logistic
regression (the
  weights are those of pollex's own MiniLM: no other model is fetched), and TF-IDF with logistic
  regression
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from small_form import BIKES, Findings, arguments_of, run

from pollex.agents.embedded.embedder import (
    MiniLmEncoder,
    SentenceTransformersEncoder,
    TextEncoder,
    find_bundled_model_folder,
)
from pollex.agents.roles import answer_each_question
from pollex.conversations.conversation import Conversation, Label
from pollex.formats.read_logs import read_logs
from pollex.formats.scores import open_score_file
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.runs.workspace import collect_garbage_less_often
from pollex.services.scorer import BatchScorer
from pollex.store.rows import AnswerRows, make_conversation_rows, make_score_block
from pollex.store.store import Store

EXCHANGED = 8
"""One word of so many is another one."""
STAGED, COMPARED = 1000, 200
"""Conversations by which stages are timed, and other ways."""


def main() -> int:
    """Print the figures."""
    parser = arguments_of(__doc__)
    parser.add_argument(
        "--data", required=True, type=Path, metavar="LOG", help="conversations with thumbs"
    )
    parser.add_argument(
        "--rubrics", type=Path, help="a set learned on it; learned anew if left out"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 6000, 20_000])
    parser.add_argument("--workers", type=int, default=1)
    return run(parser, measure_all, ["--data", BIKES, "--sizes", "200", "400"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rubrics = given.rubrics or learned(given.data, folder)
        logs = list(read_logs(given.data))
        turns = np.mean([len(one.turns) for one in logs])
        print(
            f"{len(RubricSet.load(rubrics).rubrics)} rubrics; conversations of {turns:.1f} turns on average"
        )
        slope = sizes(folder, logs, rubrics, sorted(given.sizes), given.workers)
        fresh = folder / "staged.jsonl"
        write_new(fresh, logs, STAGED, seed=1)
        stages(folder, fresh, RubricSet.load(rubrics))
        others(logs, list(read_logs(fresh))[:COMPARED])
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    return Findings(
        bars={"more conversations take no more CPU each, and under 50 ms": slope < 0.05}
    )


def learned(data: Path, folder: Path) -> Path:
    """A set learned on the log."""
    out = folder / "rubrics.json"
    pollex(folder, "learn", str(data.absolute()), "--out", str(out))
    return out


def pollex(folder: Path, *arguments: str) -> tuple[float, float]:
    """CPU seconds and megabytes of a command in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "pollex",
        *arguments,
        "--store",
        str(folder / f"store-{time.monotonic_ns()}"),
    ]
    process = subprocess.Popen(  # noqa: S603 - our own
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_new(path: Path, logs: Sequence[Conversation], count: int, seed: int = 0) -> None:
    """A log of `count` conversations of the same kind, whose texts are new."""
    rng = random.Random(seed)
    words = [word for one in logs for turn in one.turns for word in turn.content.split()]

    def new(text: str) -> str:
        found = text.split(" ")
        for _ in range(max(1, len(found) // EXCHANGED)):
            found[rng.randrange(len(found))] = rng.choice(words)
        return " ".join(found)

    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            turns = logs[number % len(logs)].turns
            messages = [{"role": turn.role, "content": new(turn.content)} for turn in turns]
            file.write(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")


def sizes(
    folder: Path, logs: Sequence[Conversation], rubrics: Path, counts: Sequence[int], workers: int
) -> float:
    """Run `pollex score` on logs of several sizes; return the CPU seconds of a conversation more."""
    print(
        f"\n{'pollex score':>14}{'CPU s':>9}{'peak MB':>9}{'ms a conversation':>19}{'a CPU second':>14}"
    )
    before: tuple[int, float] | None = None
    for count in counts:
        log = folder / f"{count}.jsonl"
        write_new(log, logs, count)
        out = str(folder / "scores.parquet")
        options = [
            "--rubrics",
            str(rubrics.absolute()),
            "--out",
            out,
            "--set",
            f"workers={workers}",
        ]
        cpu, memory = pollex(folder, "score", str(log), *options)
        log.unlink()
        ms = 1000 * (cpu - before[1]) / (count - before[0]) if before else None
        told = f"{ms:19.2f}{1000 / ms:14.0f}" if ms else ""
        print(f"{count:14}{cpu:9.1f}{memory:9.0f}{told}")
        before = count, cpu
    return (ms or 0.0) / 1000


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of some work, of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def stages(folder: Path, log: Path, rubrics: RubricSet) -> None:
    """Print what each stage takes of a conversation."""
    scorer = BatchScorer(rubrics)
    questions = rubrics.questions
    conversations = list(read_logs(log))
    asyncio.run(judged(scorer, conversations[:50]))  # what is imported late is
    with collect_garbage_less_often(), Store.open(folder / "stages") as store:
        answers = dict[str, list]()  # type: ignore[type-arg]
        scores = list[ScoreColumns]()
        run = store.begin("score", arguments={}, fingerprint={}, versions={})

        def keep() -> None:
            cells = AnswerRows(run.id)
            fingerprint = scorer.judge.fingerprint
            store.put(make_conversation_rows(run.id, conversations))
            store.put([cells.block(conversations, questions, scores[0].answers, fingerprint)])
            store.put([make_score_block(run.id, scores[0])])
            store.finish(run.id, "done")

        def write() -> None:
            with open_score_file(folder / "stages.parquet", rubrics) as put:
                put(scores[0])

        spent = {
            "read": timed(lambda: read_logs(log)),
            "judge": timed(lambda: answers.update(asyncio.run(judged(scorer, conversations)))),
            "NetSAT, probability": timed(lambda: scores.append(scorer.netsat.score_all(answers))),
            "store": timed(keep),
            "file of rows": timed(write),
        }
    total = sum(spent.values())
    print(f"\n{'stage':20}{'ms a conversation':>19}{'share':>8}")
    for name, seconds in spent.items():
        print(f"{name:20}{1000 * seconds / len(conversations):19.2f}{seconds / total:8.0%}")


async def judged(scorer: BatchScorer, conversations: Sequence[Conversation]) -> dict[str, list]:  # type: ignore[type-arg]
    """Answers by conversation."""
    questions = scorer.rubrics.questions
    return {
        one.id: await answer_each_question(scorer.judge, one, questions) for one in conversations
    }


def others(logs: Sequence[Conversation], new: Sequence[Conversation]) -> None:
    """Print what other ways take to give the same conversations a probability."""
    labelled = [one for one in logs if one.label is not Label.NONE]
    up = [one.label is Label.POSITIVE for one in labelled]
    print(f"\n{'another way':44}{'ms a conversation':>19}{'a CPU second':>14}")

    def told(name: str, seconds: float) -> None:
        print(f"{name:44}{1000 * seconds / len(new):19.2f}{len(new) / seconds:14.0f}")

    ours: TextEncoder = MiniLmEncoder()
    ours.encode(texts_of(new[0]))
    told(
        "embedding of all turns alone (pollex's)",
        timed(lambda: [ours.encode(texts_of(one)) for one in new]),
    )
    theirs: TextEncoder = SentenceTransformersEncoder(str(find_bundled_model_folder()))
    some = labelled[:60]
    regression = LogisticRegression(max_iter=1000).fit(means(theirs, some), up[:60])
    told(
        "sentence-transformers + logistic regression",
        timed(lambda: regression.predict_proba(means(theirs, new))),
    )
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    counted = LogisticRegression(C=10, max_iter=1000).fit(
        words.fit_transform(map(text_of, labelled)), up
    )
    told(
        "TF-IDF + logistic regression",
        timed(lambda: counted.predict_proba(words.transform(map(text_of, new)))),
    )


def texts_of(one: Conversation) -> list[str]:
    """What was said."""
    return [turn.content for turn in one.turns]


def text_of(one: Conversation) -> str:
    """All that was said."""
    return "\n".join(texts_of(one))


def means(encoder: TextEncoder, conversations: Iterable[Conversation]) -> np.ndarray:
    """Mean vector of each conversation."""
    return np.array([encoder.encode(texts_of(one)).mean(axis=0) for one in conversations])


if __name__ == "__main__":
    raise SystemExit(main())
