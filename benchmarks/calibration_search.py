"""How fast the paper's grid is searched: `python benchmarks/calibration_search.py [--data FOLDER] [--families 4]`.

Prints configurations × folds a second of the batched search and of a plain one, which trains one network at a time as
the paper's equations are written (autograd, `torch.optim.Adam`, weights gathered for every sheet), both on one thread,
and the largest difference in held-out probabilities over the configurations that both trained.

The sample: shapes and batches (h1, h2, batch) by lot, so that every number of units and every batch comes as often as
any other, each with a rate by lot. The batched search trains all that these have: 36 pairs of epochs × 5 folds. The
plain one trains two of them, whose epochs are by lot and mirrored, so that they have the grid's mean length.
"""

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from pollex.calibration.crossfit import assign_folds
from pollex.calibration.judgments import AnswerMatrix
from pollex.calibration.network.batched import table_of
from pollex.calibration.network.paper_recipe import Settings, fitted
from pollex.calibration.network.search import BATCHES, EPOCHS, RATES, UNITS
from pollex.calibration.network.sweep import SettingsGroup, Sweep
from pollex.measures.arrays import Floats

QUESTIONS = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q0")
JUDGES, OPTIONS, FOLDS, SEED = 24, 4, 5, 43
GRID = len(UNITS) ** 2 * len(BATCHES) * len(RATES) * len(EPOCHS) ** 2
Pick = tuple[int, int, int]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="folder with LLM-Rubric's synthetic-*.tsv; without it, made-up answers"
    )
    parser.add_argument("--families", type=int, default=4, help="how many shapes and batches (default 4)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(UNITS), help="h1 and h2 to sample from")
    parser.add_argument("--plain", type=int, default=2, help="configurations of each that the plain search trains")
    parser.add_argument("--single", action="store_true", help="single precision: faster, and no two ways agree")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(arguments.seed)
    inputs, sheets = read(arguments.data) if arguments.data else made_up(rng)
    dtype = torch.float32 if arguments.single else torch.float64
    print(f"{len(sheets)} sheets × {inputs.shape[1] - 1} inputs, {JUDGES} judges, {FOLDS} folds, {dtype}, one thread")
    compare(inputs, sheets, sample(arguments.sizes, arguments.families, rng), arguments.plain, dtype, rng)


def sample(sizes: Sequence[int], count: int, rng: np.random.Generator) -> list[SettingsGroup]:
    """Families whose h1, h2 and batch each run through all their values in a random order, each with one rate."""
    axes = [np.resize(rng.permutation(values), count).tolist() for values in (sizes, sizes, BATCHES)]
    rates = np.resize(rng.permutation(RATES), count).tolist()
    return [SettingsGroup(*shape, (rate,), EPOCHS, EPOCHS) for *shape, rate in zip(*axes, rates, strict=True)]


def compare(
    inputs: Floats,
    sheets: AnswerMatrix,
    families: list[SettingsGroup],
    plain: int,
    dtype: torch.dtype,
    rng: np.random.Generator,
) -> None:
    """Both searches on the families; prints a line each and the whole."""
    sweep = sweep_of(inputs, sheets, dtype, rng)
    totals = np.zeros(2)
    counts = np.zeros(2)
    worst = 0.0
    for family in families:
        batched, seconds = timed_batched(sweep, family)
        pairs = len(EPOCHS) ** 2 * FOLDS
        slow, difference, done = 0.0, 0.0, picks(plain, rng)
        for pick in done:
            proba, spent = timed_plain(sweep, inputs, sheets, family, pick, dtype)
            slow += spent
            pre, fine, fold = pick
            difference = max(difference, float(np.abs(batched[fold][0, pre, fine] - proba).max()))
        slow /= len(done)
        print(
            f"h1 {family.h1:>3}  h2 {family.h2:>3}  batch {family.batch:>3}  rate {family.rates[0]:.0e}: "
            f"batched {pairs / seconds:7.2f} a second, plain {1 / slow:5.2f}, "
            f"{pairs / seconds * slow:5.1f} times as fast, {difference:.1e} apart",
            flush=True,
        )
        totals += seconds, slow * pairs
        counts += pairs
        worst = max(worst, difference)
    fast, slow = counts / totals
    print(
        f"all: batched {fast:.2f} configurations × folds a second, plain {slow:.2f}, {fast / slow:.1f} times as fast; "
        f"largest difference {worst:.1e}\n"
        f"the paper's grid, {GRID:,} × {FOLDS}, at this pace: {GRID * FOLDS / fast / 3600:.1f} h batched, "
        f"{GRID * FOLDS / slow / 3600:.1f} h plain"
    )


def sweep_of(inputs: Floats, sheets: AnswerMatrix, dtype: torch.dtype, rng: np.random.Generator) -> Sweep:
    """Both searches' folds, by dialogue."""
    folds = assign_folds(sheets.row, FOLDS, rng)
    train = [np.setdiff1d(np.arange(len(sheets)), fold) for fold in folds]
    table = table_of(inputs, sheets, JUDGES, OPTIONS, dtype)
    return Sweep(table, len(QUESTIONS) - 1, train, folds, len(sheets), SEED)


def picks(count: int, rng: np.random.Generator) -> list[Pick]:
    """Places of both phases' epochs, and fold; a pair of epochs comes with its mirror, which evens their sum."""
    last = len(EPOCHS) - 1
    pairs = rng.integers(len(EPOCHS), size=((count + 1) // 2, 2))
    both = np.stack([pairs, last - pairs], axis=1).reshape(-1, 2)[:count]
    return [
        (int(pre), int(fine), int(fold))
        for (pre, fine), fold in zip(both, rng.integers(FOLDS, size=count), strict=True)
    ]


def timed_batched(sweep: Sweep, family: SettingsGroup) -> tuple[list[Floats], float]:
    """Held-out probabilities of all its configurations, and the seconds that they take."""
    start = time.process_time()
    return sweep.proba(family), time.process_time() - start


def timed_plain(
    sweep: Sweep, inputs: Floats, sheets: AnswerMatrix, family: SettingsGroup, pick: Pick, dtype: torch.dtype
) -> tuple[Floats, float]:
    """Held-out probabilities of one configuration, and the seconds that they take."""
    pre, fine, fold = pick
    settings = Settings(
        family.h1, family.h2, family.batch, family.rates[0], EPOCHS[pre], EPOCHS[fine], SEED, epoch=len(sheets)
    )
    start = time.process_time()
    network = fitted(inputs, sheets, sweep.train[fold], JUDGES, OPTIONS, sweep.main, settings, dtype)
    test = sweep.test[fold]
    with torch.no_grad():
        logits = network(torch.from_numpy(inputs[test]).to(dtype), torch.from_numpy(sheets.judge[test]))[:, sweep.main]
    return torch.softmax(logits, dim=1).numpy(), time.process_time() - start


def read(folder: Path) -> tuple[Floats, AnswerMatrix]:
    """LLM-Rubric's synthetic dialogues: inputs `[sheet, 37]` and sheets with all answers readable."""
    blocks: dict[str, dict[str, list[float]]] = {}
    with (folder / "synthetic-llm.tsv").open() as file:
        for line in csv.DictReader(file, delimiter="\t"):
            block = [float(line[f"answer{number}_prob"]) for number in range(1, OPTIONS + 1)]
            blocks.setdefault(line["text_id"], {})[line["criterion"]] = block
    with (folder / "synthetic-human.tsv").open() as file:
        kept = [
            line
            for line in csv.DictReader(file, delimiter="\t")
            if line["Q0"] != "0" and line["text_id"] in blocks and all(line[question] for question in QUESTIONS)
        ]
    texts, rows = np.unique([line["text_id"] for line in kept], return_inverse=True)
    _, judges = np.unique([line["annotator_id"] for line in kept], return_inverse=True)
    X = np.array([[p for question in QUESTIONS for p in blocks[text][question]] for text in texts])
    answers = np.array([[int(float(line[question])) - 1 for question in QUESTIONS] for line in kept])
    return with_bias(X[rows]), AnswerMatrix(rows, judges, answers)


def made_up(rng: np.random.Generator) -> tuple[Floats, AnswerMatrix]:
    """Answers of the same shape: 660 sheets of 223 dialogues by judges of whom some judged much more than others."""
    quality = rng.normal(size=(223, 1))
    logits = rng.normal(size=(223, len(QUESTIONS), OPTIONS)) + quality[..., None] * np.linspace(-1, 1, OPTIONS)
    X = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    rows = np.sort(rng.integers(223, size=660))
    judges = rng.choice(JUDGES, p=rng.dirichlet(np.full(JUDGES, 6.0)), size=660)
    judges[:JUDGES] = np.arange(JUDGES)
    answers = np.clip(np.round(1.5 + quality[rows] + rng.normal(size=(660, len(QUESTIONS)))), 0, OPTIONS - 1)
    hidden = rng.random(answers.shape) < 0.12
    hidden[:, -1] = False
    return with_bias(X.reshape(223, -1)[rows]), AnswerMatrix(
        rows, judges, np.where(hidden, -1, answers).astype(np.int64)
    )


def with_bias(rows: Floats) -> Floats:
    """Rows with a column of ones."""
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


if __name__ == "__main__":
    main()
