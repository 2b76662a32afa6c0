"""The end of the chain: does LLM-Rubric's network give good probabilities?

It begins as the mean of ordinal mixed effects and of NetSAT with learned weights.

    python benchmarks/chain.py --data sgd.jsonl mwoz.jsonl examples/bikes.jsonl [--halvings 5]
    [--labels 200 2000 5000]

For each log, halves are drawn again and again, rubrics are learned from one, and all models of the
probability are compared by cross-fitting there, with rubrics chosen without each fold; AUC is that
of the other half. Where a log has `ratings`, their rounded mean is learned as a grade. The planted
world has twelve rubrics, two of which do harm only together. Each bar is printed with what was
measured, n and a 95 % interval over halvings (of Student's t), or over conversations.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from planted_world import interval
from rubicon import dealt_as_before, learned
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from small_form import BIKES, Findings, arguments_of, run, table

from pollex.calibration import grades as _grades  # noqa: F401 - before `thumbs` is without the network for a while
from pollex.calibration import thumbs
from pollex.calibration.candidates import CALIBRATION_NETWORK_NAME, DECORRELATED_NETSAT_NAME
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.models.weighted_sum import WeightedSum
from pollex.calibration.thumbs import fit_calibration_model, predict_thumb_up_probability
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.formats.read_logs import read_logs
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import compute_auc
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings

SIGNS = (-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0)
OTHERS = 4000
"""Conversations of the planted world that are predicted."""

GAINS = {200: None, 2000: 0.40, 5000: 0.65}
"""Bar by number of labels: the share of what can be gained over the linear model; None: no more than .003 behind it."""


def main() -> int:
    """Measure, and print every bar."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="+", required=True, type=Path, metavar="LOG")
    parser.add_argument("--halvings", type=int, default=5)
    parser.add_argument(
        "--labels", type=int, nargs="*", default=list(GAINS), help="in the planted world"
    )
    parser.add_argument(
        "--worlds", type=int, default=8, help="planted worlds for each number of labels"
    )
    return run(parser, measure_all, ["--data", BIKES, "--halvings", "2", "--labels"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    print("what | measured | bar | held")
    rows = [of_log(log, given.halvings) for log in given.data]
    worlds = [of_world(labels, given.worlds) for labels in given.labels]
    no_torch()
    bikes_without_torch()
    numpy_beside_torch()
    head = ["log (labels to learn from)", *SHOWN.values(), "network less decorrelated NetSAT, 95 %"]
    of_worlds = [
        "labels",
        "what",
        f"mean of {given.worlds} planted worlds, each measured on {OTHERS:,} others",
    ]
    return Findings({"table": table(head, rows), "worlds": table(of_worlds, worlds)}, bars=HELD)


SHOWN = {
    "NetSAT": "NetSAT",
    DECORRELATED_NETSAT_NAME: "decorrelated NetSAT",
    "ordinal mixed effects": "ordinal mixed effects",
    CALIBRATION_NETWORK_NAME: "network",
}


HELD: dict[str, bool] = {}
"""Each bar that was measured so far, and whether it holds."""


def told(what: str, figure: str, bar: str, held: bool) -> None:
    """Print one bar."""
    HELD[what] = held
    print(f"{what} | {figure} | {bar} | {'yes' if held else 'NO'}", flush=True)


def judged(
    what: str, values: Sequence[float] | Floats, least: float = -np.inf, most: float = np.inf
) -> None:
    """Print the bar of a mean; one that is missed, while the interval of the mean holds it, is told apart."""
    mean = float(np.mean(values))
    half = 0.0
    if len(values) > 1:
        half = float(
            student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
        )
    held = (
        "yes"
        if least <= mean <= most
        else "NO"
        if mean + half < least or mean - half > most
        else "within noise"
    )
    bar = f"≤ {most}" if np.isfinite(most) else f"≥ {least}"
    HELD[what] = held != "NO"
    print(
        f"{what} | {mean:.3f} [{mean - half:.3f}, {mean + half:.3f}] | {bar} | {held}", flush=True
    )


def of_log(path: Path, halvings: int) -> list[object]:
    """Print the bars of one log, and return its row of the table."""
    logs = dealt_as_before(graded(read_logs(path)))
    found: dict[str, list[float]] = defaultdict(list)
    grades, n, with_grades = [], 0, any("grade" in one.metadata for one in logs)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(halvings):
            settings = LearnSettings(seed=seed, stability=False)
            own = replace(logs, label_field="grade" if with_grades and seed == halvings - 1 else "")
            with without_network():
                before, first = timed(
                    replace(logs, label_field=""),
                    replace(settings, probability="best"),
                    Path(folder),
                )
            run, second = timed(own, settings, Path(folder))
            # the first run embeds, and grades are not what is compared
            if seed and not own.label_field:
                found["seconds more"].append(second - first)
            record = run.rubric_set.calibrator
            assert record is not None
            for row in record.compared:
                found[row.name].append(row.log_loss)
            n = record.compared[0].n
            found["auc"].append(held_out_auc(run))
            found["ahead"].append(held_out_auc(run) - held_out_auc(before))
            assert record.held_out is not None
            found["held out"].append(record.held_out.log_loss.value or np.nan)
            if record.rating:
                grades.append(record.rating)
    name = f"{path.stem} (n = {n}, {halvings} halvings)"
    means = {key: f"{np.mean(values):.4f}" for key, values in found.items()}
    print(
        f"{name}: log-loss "
        + ", ".join(f"{key} {means[key]}" for key in found if key in CANDIDATES)
    )
    # The best on average: the best of each halving would be the luckiest of five.
    best = min(
        (key for key in found if key in CANDIDATES - {CALIBRATION_NETWORK_NAME}),
        key=lambda key: np.mean(found[key]),
    )
    for other, bar in ((best, 0.004), (DECORRELATED_NETSAT_NAME, 0.002)):
        behind = np.subtract(found[CALIBRATION_NETWORK_NAME], found[other])
        judged(f"{name}, log-loss behind {other}", behind, most=bar)
    judged(
        f"{name}, held-out AUC {means['auc']}, less that without the network",
        found["ahead"],
        least=-0.003,
    )
    judged(f"{name}, seconds of CPU more than without the network", found["seconds more"], most=6)
    print(f"{name}, held-out log-loss: {interval(found['held out'])}")
    for record in grades:
        rows = {row.name: row for row in record.compared}
        for figure, sign in (("rmse", 1), ("pearson", -1)):
            one, linear = (
                getattr(rows[key], figure)
                for key in (CALIBRATION_NETWORK_NAME, DECORRELATED_NETSAT_NAME)
            )
            bar = f"linear {linear.value:.3f} [{linear.low:.3f}, {linear.high:.3f}]"
            said = f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
            told(f"{path.stem} grades (n = {rows[CALIBRATION_NETWORK_NAME].n}), {figure}", said, bar,
                 sign * (one.value - linear.value) <= 0.005)  # fmt: skip
    losses = [f"{np.mean(found[key]):.3f}" for key in SHOWN]
    return [
        f"{path.stem} ({n})",
        *losses,
        interval(np.subtract(found[CALIBRATION_NETWORK_NAME], found[DECORRELATED_NETSAT_NAME])),
    ]


def timed(logs: Logs, settings: LearnSettings, embeddings: Path) -> tuple[Learned, float]:
    """Learn; return what was learned, and the seconds of CPU."""
    began = time.process_time()
    run, _ = learned(logs, DomainProfile.neutral(), settings, embeddings)
    return run, time.process_time() - began


@contextmanager
def without_network() -> Iterator[None]:
    """Learn as before there was a network: the other models, and the best of them."""
    every = thumbs.make_candidates
    thumbs.make_candidates = lambda signs: {
        name: one for name, one in every(signs).items() if name != CALIBRATION_NETWORK_NAME
    }
    try:
        yield
    finally:
        thumbs.make_candidates = every


def held_out_auc(run: Learned) -> float:
    """AUC of the probability on the held-out half."""
    rows = [one for one in run.scores if one.side == "held_out" and one.probability is not None]
    return compute_auc(
        np.array([one.probability for one in rows]), np.array([one.positive for one in rows])
    )


CANDIDATES = frozenset(
    {
        CALIBRATION_NETWORK_NAME,
        DECORRELATED_NETSAT_NAME,
        "NetSAT",
        "NetSAT with learned weights",
        "ordinal mixed effects",
    }
) | {"decorrelated NetSAT with learned weights"}


def graded(logs: Logs) -> Logs:
    """Give conversations with `ratings` their rounded mean as a grade."""

    def with_grade(one: Conversation) -> Conversation:
        if not one.metadata.get("ratings"):
            return one
        return one.model_copy(
            update={
                "metadata": one.metadata | {"grade": round(float(np.mean(one.metadata["ratings"])))}
            }
        )

    return replace(logs, conversations=[with_grade(one) for one in logs])


def planted(labels: int, rng: np.random.Generator) -> tuple[Floats, Bools, Floats]:
    """Draw how far rubrics hold `[conversation, rubric]`, thumbs and true P(up); OTHERS conversations are added."""
    count = labels + OTHERS
    holds = rng.random((count, len(SIGNS))) < 0.3
    harm = 1.2 * holds[:, 0] + 0.8 * holds[:, 1] + 2.5 * (holds[:, 3] & holds[:, 4])
    true = 1 / (1 + np.exp(-(1.2 - harm + 0.7 * holds[:, 2] + 0.4 * holds[:, 5])))
    return np.clip(holds + rng.normal(0, 0.15, holds.shape), 0, 1), rng.random(count) < true, true


def of_world(labels: int, worlds: int) -> list[object]:
    """Print the bar of the planted world with so many labels, and return its row."""
    behind = []
    gained = []
    options = np.linspace(0, 1, 5)
    for world in range(worlds):
        held, up, true = planted(labels, np.random.default_rng([3, world]))
        # between the two nearest options
        answers = np.clip(1 - np.abs(held[..., None] - options) / 0.25, 0, 1)
        known = slice(0, labels)
        others = slice(labels, None)
        linear = (
            LogisticRegression(C=1.0).fit(held[known], up[known]).predict_proba(held[others])[:, 1]
        )
        network = predict_thumb_up_probability(
            fit_calibration_model(CALIBRATION_NETWORK_NAME, answers[known], SIGNS, up[known]),
            answers[others],
        )
        line, net, least = (
            -np.log(np.where(up[others], p, 1 - p)).mean() for p in (linear, network, true[others])
        )
        behind.append(float(net - line))
        gained.append(float((line - net) / (line - least)))
    what = f"planted world, {labels} labels (n = {OTHERS}, {worlds} worlds)"
    if (bar := GAINS.get(labels)) is None:
        judged(f"{what}, log-loss behind the linear model", behind, most=0.003)
        return [f"{labels:,}", "log-loss behind a linear model", interval(behind)]
    judged(f"{what}, gained of what can be", gained, least=bar)
    return [f"{labels:,}", "gained of what can be gained over a linear model", interval(gained)]


SCORED = """
import sys, time, tempfile, numpy as np
from pathlib import Path
from pollex.calibration.storage import deserialize_calibrator
pack = (Path(sys.argv[1]) / "facts.json").read_text(), (Path(sys.argv[1]) / "arrays").read_bytes()
import json
model = deserialize_calibrator(json.loads(pack[0]), pack[1])
X = np.random.default_rng(0).dirichlet(np.ones(5), (2000, 12)).reshape(2000, -1)
def ms(one):
    one.predict_proba(X)
    began = time.process_time()
    one.predict_proba(X)
    return (time.process_time() - began) / len(X) * 1000
print(ms(model) - ms(model.starts_[0]), "torch" in sys.modules)
"""


def no_torch() -> None:
    """Print what the network costs a score, in a process that only reads it."""
    import json

    from pollex.calibration.storage import serialize_calibrator

    held, up, _ = planted(200, np.random.default_rng(0))
    answers = np.clip(1 - np.abs(held[:200, :, None] - np.linspace(0, 1, 5)) / 0.25, 0, 1)
    pack = serialize_calibrator(
        fit_calibration_model(CALIBRATION_NETWORK_NAME, answers, SIGNS, up[:200])
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "facts.json").write_text(json.dumps(pack.facts), encoding="utf-8")
        (Path(folder) / "arrays").write_bytes(pack.arrays)
        command = [sys.executable, "-c", SCORED, folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    more, torch = ended.stdout.split()
    told("a conversation's probability (n = 2000), ms more than its start", f"{float(more):.4f}", "≤ .05",
         float(more) <= 0.05)  # fmt: skip
    told("torch loaded by scoring", torch, "False", torch == "False")


SCORE = """
import sys
from pollex.cli.main import main
try:
    main()
finally:
    print("torch" in sys.modules)
"""


def bikes_without_torch() -> None:
    """Print whether `pollex score` loads torch with a set that was learned from the bicycle shop."""
    bikes = str(Path(__file__).parents[1] / "examples" / "bikes.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        for verb in (
            ["learn", bikes, "--out", "set.json"],
            ["score", bikes, "--rubrics", "set.json"],
        ):
            command = [sys.executable, "-c", SCORE, *verb]
            ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)  # noqa: S603 - ours
    torch = ended.stdout.splitlines()[-1]
    told("torch loaded by score on the bikes set", torch, "False", torch == "False")


def numpy_beside_torch() -> None:
    """Print how far NumPy's probabilities are from those of the networks as torch trained them."""
    import torch

    from pollex.calibration.network import begun

    held, up, _ = planted(200, np.random.default_rng(0))
    answers = np.clip(1 - np.abs(held[:200, :, None] - np.linspace(0, 1, 5)) / 0.25, 0, 1)
    stacks = []
    losses = begun._NetworkStack.losses
    begun._NetworkStack.losses = lambda stack: stacks.append(stack) or losses(stack)  # type: ignore[func-returns-value]
    try:
        network = CalibrationNetwork(
            thumbs.HIDDEN_UNITS_A_LAYER,
            thumbs.HIDDEN_UNITS_A_LAYER,
            start=WeightedSum(SIGNS),
            strengths=(20.0,),
        )
        rubrics = [str(number) for number in range(len(SIGNS))]
        network.fit(
            thumbs.flatten_answer_probabilities(answers),
            up[:200].astype(float),
            questions=thumbs.make_thumb_questionnaire(rubrics),
        )
    finally:
        begun._NetworkStack.losses = losses
    begins = np.log(network.starts_[0].predict_proba(thumbs.flatten_answer_probabilities(answers)))
    stack = stacks[0]
    stack.begins = torch.tensor(begins, dtype=torch.float32)[None, :, None].expand(
        stack.count, -1, 1, -1
    )
    with torch.no_grad():
        by_torch = torch.softmax(stack.logits(0), -1).mean(0)[:, 1].numpy()
    apart = float(np.abs(predict_thumb_up_probability(network, answers) - by_torch).max())
    told(
        "NumPy's forward pass less torch's, at most (n = 200)",
        f"{apart:.1e}",
        "≤ 1e-6",
        apart <= 1e-6,
    )


if __name__ == "__main__":
    raise SystemExit(main())
