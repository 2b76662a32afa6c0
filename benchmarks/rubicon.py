"""How well learnt rubrics tell good conversations from bad ones they were not learnt from.

    python benchmarks/rubicon.py --data LOG [LOG …] [--splits 10] [--seed 0] [--json]

Learns with the whole `learn` graph and the embedded roles on stratified 50:50 splits (each split's
seed is its number) and prints mean ± standard deviation over the splits of the held-out figures,
beside TF-IDF and thirteen counts with logistic regression on the same splits. Then the same of the
probability of a thumb up: its AUC, log-loss and Brier score, beside NetSAT and the share of
positive training conversations. The halves are those of earlier figures (`dealt_as_before`).

Splits share conversations, so the deviation over splits is no independent standard error. The
intervals of the paired differences allow for that: Nadeau and Bengio 2003,
doi:10.1023/A:1024068626366.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from counts import count_scores
from scipy.stats import t as student
from small_form import FEW, Findings, arguments_of, run, table

from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.conversations.splits import split_conversations
from pollex.formats.read_logs import read_logs
from pollex.measures.classification import Assessment, assess_scores_against_labels, compute_auc
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs import learn_runs as runs
from pollex.runs import run as running
from pollex.runs.roles import build_embedded_run_roles
from pollex.store.store import Store

SHOWN = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "f1": "F1",
    "delta_netsat": "ΔNetSAT",
    "yield_rate": "YR@90",
}
LIKELY = {"auc": "AUC", "log_loss": "log-loss", "brier": "Brier"}
BASELINES = ("TF-IDF", "13 counts")
COMPARABLE = ("auc", "accuracy", "f1")
"""A baseline's scores are log-odds and have no window."""

PROBABILITY = "probability"
NETSAT = "NetSAT itself"
SHARE = "class share"

Table = dict[str, dict[str, list[float | None]]]
"""By who scored and metric: one value a split."""


@dataclass(frozen=True)
class Timing:
    """One learning run, with how often halves choose each rubric."""

    seconds: float
    encoded: int


def main() -> int:
    """Print the figures of every log."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--domain", help="a domain profile; the neutral one if left out")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first split; the others follow")
    parser.add_argument("--budget", type=int, nargs=2, metavar=("SAT", "DSAT"))
    parser.add_argument("--test-fraction", type=float, default=0.5)
    parser.add_argument(
        "--no-speed", action="store_true", help="without the seconds that learning takes"
    )
    parser.add_argument(
        "--embeddings", help="folder of cached embeddings; an empty temporary one if left out"
    )
    return run(parser, measure_all, ["--data", FEW, "--splits", "1", "--no-speed"])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    profile = DomainProfile.load(arguments.domain) if arguments.domain else DomainProfile.neutral()
    budget = tuple(arguments.budget) if arguments.budget else None
    settings = LearnSettings(test_fraction=arguments.test_fraction, budget=budget)
    reports: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        embeddings = Path(arguments.embeddings or scratch)
        for path in arguments.data:
            report = measured(
                path,
                profile,
                settings,
                range(arguments.seed, arguments.seed + arguments.splits),
                embeddings,
                speed=not arguments.no_speed,
            )
            print(in_words(report))
            reports[Path(path).stem] = report
    auc = [
        value or 0 for report in reports.values() for value in report["values"]["held-out"]["auc"]
    ]
    return Findings(
        tables_of(reports),
        reports,
        {"NetSAT's held-out AUC is above chance": float(np.mean(auc)) > 0.55},
    )


def measured(
    path: str,
    profile: DomainProfile,
    settings: LearnSettings,
    seeds: Sequence[int],
    embeddings: Path,
    *,
    speed: bool,
) -> dict[str, Any]:
    """All figures of one log, as JSON values."""
    logs = dealt_as_before(read_logs(path))
    timings = [learned(logs, profile, settings, embeddings)[1] for _ in range(2)] if speed else []
    table: Table = {}
    probabilities: Table = {}
    chosen: list[str] = []
    for seed in seeds:
        drawn = LearnSettings(**vars(settings) | {"seed": seed, "stability": False})
        found, _ = learned(logs, profile, drawn, embeddings)
        rubrics = found.rubric_set
        for name, figures_of in likely(found).items():
            for metric, value in figures_of.items():
                probabilities.setdefault(name, {}).setdefault(metric, []).append(value)
        chosen.append(rubrics.calibrator.chosen if rubrics.calibrator else "none")
        for name, measured_by in compared(logs, drawn, rubrics).items():
            for metric in SHOWN:
                table.setdefault(name, {}).setdefault(metric, []).append(
                    getattr(measured_by, metric).value
                )
    ratio = rubrics.data.held_out / rubrics.data.training
    return {
        "log": Path(path).name,
        "positives": sum(c.label is Label.POSITIVE for c in logs.learnable),
        "negatives": sum(c.label is Label.NEGATIVE for c in logs.learnable),
        "training": rubrics.data.training,
        "held_out": rubrics.data.held_out,
        "splits": list(seeds),
        "budget": list(settings.limits),
        "values": table,
        "advantage": {
            name: advantage(table["held-out"]["auc"], table[name]["auc"], ratio)
            for name in BASELINES
        },
        "probabilities": probabilities,
        "chosen": dict(Counter(chosen)),
        "gain": {
            "AUC of the probability less that of NetSAT": advantage(
                probabilities[PROBABILITY]["auc"], probabilities[NETSAT]["auc"], ratio
            ),
            "Log-loss of the class share less that of the probability": advantage(
                probabilities[SHARE]["log_loss"], probabilities[PROBABILITY]["log_loss"], ratio
            ),
        },
        "seconds": [vars(timing) for timing in timings],
        "load": os.getloadavg()[0],
    }


def dealt_as_before(logs: Logs) -> Logs:
    """Give each conversation a group of its own, so that the halves are those of all earlier figures.

    Conversations without groups are dealt in runs since, see `splits`; other halves are other test
    conversations, and figures of before and after could not be compared.
    """
    if any(conversation.group is not None for conversation in logs):
        return logs
    return replace(logs, conversations=[one.model_copy(update={"group": one.id}) for one in logs])


def learned(
    logs: Logs,
    profile: DomainProfile,
    settings: LearnSettings,
    embeddings: Path,
    *,
    embedder: Embedder | None = None,
) -> tuple[Learned, Timing]:
    """One run of the `learn` graph in a store of its own.

    Args:
        embedder: One that has its model loaded already; else one of `embeddings` is made, which
            counts as work.
    """
    start = time.perf_counter()
    embedder = embedder or Embedder(cache=embeddings)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        staff = build_embedded_run_roles(profile, embedder)
        asked = runs.LearningInput(logs=logs, profile=profile, settings=settings)
        run = runs.prepare_learning(asked, staff, running.RunSettings.of(store))
        learned = asyncio.run(run.carry_out())
    return learned, Timing(time.perf_counter() - start, embedder.encoded)


def compared(logs: Logs, settings: LearnSettings, rubrics: RubricSet) -> Mapping[str, Assessment]:
    """Figures of one split by who scored it."""
    assert rubrics.held_out is not None
    tfidf = rubrics.baselines[0].held_out
    assert tfidf is not None
    # The same call, and so the same sides, as in `LearnRun`.
    sides = split_conversations(logs.learnable, settings.test_fraction, settings.seed)
    positive, truth = (
        np.array([c.label is Label.POSITIVE for c in side]) for side in (sides.train, sides.test)
    )
    counts = count_scores(sides.train, positive, sides.test)
    rng = np.random.default_rng(settings.seed)
    return {
        "held-out": rubrics.held_out,
        "training": rubrics.training,
        "TF-IDF": tfidf,
        "13 counts": assess_scores_against_labels(
            counts, truth, 0.0, np.zeros(len(counts), bool), rng, resamples=2
        ),
    }


def likely(found: Learned) -> dict[str, dict[str, float | None]]:
    """AUC, log-loss and Brier score on the held-out side, by what gives the probability; NetSAT gives none."""
    record = found.rubric_set.calibrator
    held_out = found.rubric_set.held_out
    assert record is not None
    assert record.held_out is not None
    assert held_out is not None
    truth = record.held_out
    rows = [
        (s.probability, s.positive)
        for s in found.scores
        if s.side == "held_out" and s.probability is not None
    ]
    probability = np.array([p for p, _ in rows])
    positive = np.array([up for _, up in rows], dtype=bool)
    share = {"auc": 0.5, "log_loss": truth.share_log_loss.value, "brier": truth.share_brier.value}
    return {
        PROBABILITY: {
            "auc": compute_auc(probability, positive),
            "log_loss": truth.log_loss.value,
            "brier": truth.brier.value,
        },
        NETSAT: {"auc": held_out.auc.value, "log_loss": None, "brier": None},
        SHARE: share,
    }


def advantage(
    ours: Sequence[float | None], theirs: Sequence[float | None], ratio: float
) -> dict[str, float]:
    """Mean of the paired differences with its 95 % interval; see `resampled_interval`."""
    differences = np.array(ours, dtype=np.float64) - np.array(theirs, dtype=np.float64)
    low, high = resampled_interval(differences, ratio)
    return {"mean": float(differences.mean()), "low": low, "high": high}


def resampled_interval(
    differences: npt.NDArray[np.float64], ratio: float, level: float = 0.95
) -> tuple[float, float]:
    """t-interval of the mean over random splits, widened for what the splits share.

    The variance of the mean is (1/k + n_test/n_train)·s² in place of s²/k.
    Source: Nadeau and Bengio 2003, equation 9, doi:10.1023/A:1024068626366.

    Args:
        differences: One a split, [k].
        ratio: n_test / n_train.
    """
    k = len(differences)
    if k < 2:
        return -np.inf, np.inf
    half = student.ppf((1 + level) / 2, k - 1) * np.sqrt((1 / k + ratio) * differences.var(ddof=1))
    return float(differences.mean() - half), float(differences.mean() + half)


def in_words(report: Mapping[str, Any]) -> str:
    """The tables of one log."""
    lines = [
        heading(report),
        f"{'mean ± sd over splits':<24}" + "".join(f"{title:>16}" for title in SHOWN.values()),
    ]
    for name, metrics in report["values"].items():
        known = SHOWN if name in ("held-out", "training") else COMPARABLE
        cells = [spread(values) if metric in known else "–" for metric, values in metrics.items()]
        lines.append(f"{ROWS[name]:<24}" + "".join(f"{cell:>16}" for cell in cells))
    lines.append(
        f"{'probability of thumb up':<24}" + "".join(f"{title:>16}" for title in LIKELY.values())
    )
    for name, by_metric in report["probabilities"].items():
        cells = [
            spread(by_metric[metric]) if by_metric[metric][0] is not None else "–"
            for metric in LIKELY
        ]
        lines.append(f"{name:<24}" + "".join(f"{cell:>16}" for cell in cells))
    counts = ", ".join(
        f"{name} {n}×" for name, n in sorted(report["chosen"].items(), key=lambda one: -one[1])
    )
    lines.append(f"Chosen on training conversations: {counts}")
    for name, gap in report["gain"].items():
        lines.append(
            f"{name}, paired: {gap['mean']:+.3f}, 95 % interval {gap['low']:+.3f} to {gap['high']:+.3f}"
        )
    for name, gap in report["advantage"].items():
        lines.append(
            f"AUC of NetSAT less that of {name}, paired: {gap['mean']:+.3f}, "
            f"95 % interval {gap['low']:+.3f} to {gap['high']:+.3f} (t, corrected for what the splits share)"
        )
    return "\n".join(lines)


def tables_of(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return tables for pages: all figures, those of the probability, both in short, and paired differences."""
    whole = []
    probability = []
    short = []
    paired = []
    speed = []
    for name, report in reports.items():
        log = f"{name} ({report['training'] + report['held_out']})"
        values = report["values"]
        chances = report["probabilities"]
        own = [
            spread(values["held-out"][metric], 1 if metric == "delta_netsat" else 3)
            for metric in SHOWN
        ]
        whole.append([log, *own, *(spread(values[baseline]["auc"]) for baseline in BASELINES)])
        loss, share = (spread(chances[source]["log_loss"]) for source in (PROBABILITY, SHARE))
        gain = report["gain"]["Log-loss of the class share less that of the probability"]
        probability.append(
            [log, spread(chances[PROBABILITY]["auc"]), loss, share, in_brackets(gain)]
        )
        short.append([log, own[0], spread(values["TF-IDF"]["auc"]), loss, share])
        ahead = [in_brackets(report["advantage"][baseline]) for baseline in BASELINES]
        paired.append(
            [log, *ahead, in_brackets(report["gain"]["AUC of the probability less that of NetSAT"])]
        )
        seconds = [f"{run['seconds']:.1f} s, {run['encoded']} texts" for run in report["seconds"]]
        speed += [[log, *seconds, f"{report['load']:.1f}"]] if seconds else []
    baselines = [f"AUC of {baseline}" for baseline in BASELINES]
    both = ["log (labeled)", "AUC of the score", "AUC of TF-IDF"]
    losses = ["log-loss of the probability", "of the class share"]
    return {
        "table": table(["log (labeled)", *SHOWN.values(), *baselines], whole),
        "probability": table(
            ["log (labeled)", "AUC of the probability", *losses, "gain, 95 % interval"], probability
        ),
        "short": table([*both, *losses], short),
        "speed": table(["log", "nothing cached", "embeddings cached", "load average"], speed),
        "paired": table(
            ["AUC less that of", *BASELINES, "the probability's less NetSAT's"], paired
        ),
    }


def in_brackets(gap: Mapping[str, float]) -> str:
    """Return a paired difference with its interval."""
    return f"{gap['mean']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]"


def heading(report: Mapping[str, Any]) -> str:
    """What was learnt from, and how much of it."""
    return (
        f"\n{report['log']}: {report['positives']} positive, {report['negatives']} negative; "
        f"{len(report['splits'])} splits of {report['training']} to learn from and {report['held_out']} held out; "
        f"{' + '.join(map(str, report['budget']))} rubrics, embedded roles"
    )


ROWS = {
    "held-out": "NetSAT",
    "training": "NetSAT, on training",
    "TF-IDF": "TF-IDF + log. regr.",
    "13 counts": "13 counts + log. regr.",
}


def spread(values: Sequence[float | None], digits: int = 3) -> str:
    """Mean ± standard deviation; undefined ones are left out and counted."""
    defined = np.array([value for value in values if value is not None])
    if not len(defined):
        return "undefined"
    deviation = f" ± {defined.std(ddof=1):.{digits}f}" if len(defined) > 1 else ""
    missing = f" ({len(values) - len(defined)} undef.)" if len(defined) < len(values) else ""
    return f"{defined.mean():.{digits}f}{deviation}{missing}"


if __name__ == "__main__":
    raise SystemExit(main())
