"""RUBICON's Tables 1–4 with our figures beside the published ones.

    python benchmarks/rubicon_tables.py --data LOG [LOG …] [--splits 20] [--seed 0] [--pools FOLDER] [--json]
    python benchmarks/rubicon_tables.py --data LOG --model M [--base-url U] [--domain PROFILE] [--adapted RUBRICS]

Table 3, the policies, runs on the embedded pool of each log: 10 + 10 rubrics, stratified 50:50 splits (each split's
seed is its number), α by cross-validation on the training half, every figure on the other half. Policies that draw are
the mean of 20 draws a split. Tables 1, 2 and 4 need a model: each row is `pollex learn` with the options of
`TECHNIQUES`. Without `--model` they are left out, and `benchmarks/planted_world.py` has them against a simulated model.
The last column, accuracy outside the window, says what a yield is worth.

Differences are paired by split. Two errors stand beside each: the standard error over splits, which is too small as
splits share conversations, and the t-interval corrected for that (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).
The published figures are of 100 conversations with a C# debugging assistant and GPT-4: another log and another judge.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from embedded_pools import JudgedPool, judged_pool
from rubicon import resampled_interval, spread

from pollex.conversations.logs import read_logs
from pollex.prompts.profile import DomainProfile
from pollex.selection.alpha import choose_alpha
from pollex.selection.losses import theta_c
from pollex.selection.metrics import assess
from pollex.selection.policies import ALPHAS, DEFAULT, POLICIES
from pollex.selection.pool import Pool
from pollex.selection.threshold import fit_window

BUDGET = (10, 10)
DRAWS = 20
DRAWN = ("random_order", "ucb")

SHOWN = {
    "delta_netsat": "ΔNetSAT",
    "yield_at_90": "YR@90",
    "accuracy": "acc",
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "auc": "AUC",
    "confident_accuracy": "acc outside",
}
PERCENT = ("yield_at_90", "accuracy", "precision", "recall", "f1", "confident_accuracy")

PUBLISHED = {
    "BING": (11.0, 58, 70, 64.7, 88, 74.6),
    "BING adapted": (11.3, 64, 76, 70.9, 88, 78.6),
    "SPUR": (3.0, 28, 58, 55.9, 76, 64.4),
    "RUBICON": (27.4, 84, 76, 68.6, 96, 80.0),
    "−CDP": (23.7, 72, 64, 58.5, 96, 72.7),
    "−DS": (17.9, 66, 52, 51.0, 100, 67.6),
    "−CDP −DS": (15.7, 62, 50, 50.0, 100, 66.7),
    "UCB": (23.6, 68, 72, 65.7, 92, 76.7),
    "brute force": (24.2, 74, 74, 67.7, 92, 78.0),
    "correctness only": (29.7, 74, 76, 69.7, 92, 79.3),
    "SPUR, numeric scale": (3.0, 28, 58, 55.9, 76, 64.4),
    "SPUR, Likert": (14.5, 48, 70, 67.9, 76, 71.7),
    "SPUR, Likert, domain-adapted": (16.1, 58, 80, 77.8, 84, 80.8),
}
"""By technique: ΔNetSAT; YR@90, accuracy, P, R and F1 in percent. Source: Biyani et al. 2024, Tables 1–4."""

SAME = {"greedy": "RUBICON", "ucb": "UCB", "brute_force": "brute force", "correctness": "correctness only"}
"""Our policies by the paper's names."""

TECHNIQUES: dict[str, dict[str, tuple[str, ...]]] = {
    "Table 1, rubric sets": {
        "BING": ("--rubrics-from", "generic"),
        "BING adapted": ("--rubrics-from", "ADAPTED"),
        "SPUR": ("--method", "spur"),
        "RUBICON": ("--policy", "greedy"),
    },
    "Table 2, ablations": {
        "−CDP": ("--policy", "greedy", "--without", "cdp"),
        "−DS": ("--policy", "greedy", "--without", "ds"),
        "−CDP −DS": ("--policy", "greedy", "--without", "cdp,ds"),
    },
    "Table 4, evaluators": {
        "SPUR, numeric scale": ("--method", "spur", "--scale", "numeric"),
        "SPUR, Likert": ("--method", "spur", "--scale", "likert"),
        "SPUR, Likert, domain-adapted": ("--method", "spur", "--scale", "likert-domain"),
    },
}
"""What `pollex learn` is told for each row that needs a model. BING's published set is not ours to ship: a generic set
of our own stands in its place."""

OURS = {"BING": "our generic set, in BING's place", "BING adapted": "our generic set, adapted", "RUBICON": "greedy"}
"""What stands in a row of ours where it isn't what the paper's row is named after."""

Values = dict[str, list[float | None]]
"""By metric: one value a split."""

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Print the tables of every log, then what the default is ahead by over all of them."""
    arguments = _arguments()
    profile = DomainProfile.load(arguments.domain) if arguments.domain else DomainProfile.neutral()
    seeds = range(arguments.seed, arguments.seed + arguments.splits)
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        folders = Path(arguments.embeddings or scratch), arguments.pools
        for path in arguments.data:
            report = policies(path, profile, seeds, *folders)
            if arguments.model:
                report["techniques"] = {table: list(asked(path, table, arguments)) for table in TECHNIQUES}
            reports.append(report)
            if not arguments.json:
                print(in_words(report))
    over_all = {name: _mean_ahead(reports, name) for name in POLICIES if name != DEFAULT}
    if arguments.json:
        print(json.dumps({"logs": reports, "over_all": over_all}, ensure_ascii=False))
    else:
        print(all_in_words(over_all, len(reports)))
        if not arguments.model:
            print(needing_a_model())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--domain", help="a domain profile; the neutral one if left out")
    parser.add_argument("--adapted", default="generic_debugging", help="the generic set adapted to the domain")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first split; the others follow")
    parser.add_argument("--embeddings", help="folder of cached embeddings; an empty temporary one if left out")
    parser.add_argument("--pools", type=Path, help="folder in which judged pools are kept for another run")
    parser.add_argument("--model", help="for the rows that need one")
    parser.add_argument("--base-url", help="of the model's endpoint")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the tables")
    return parser.parse_args()


def policies(
    path: str, profile: DomainProfile, seeds: Sequence[int], embeddings: Path, pools: Path | None
) -> dict[str, Any]:
    """Held-out figures of every policy on the same pools, and what the default is ahead by."""
    logs = read_logs(path)
    values: dict[str, Values] = {name: {metric: [] for metric in SHOWN} for name in POLICIES}
    alphas: dict[str, list[float]] = {name: [] for name in POLICIES}
    for seed in seeds:
        pool = judged_pool(logs, profile, seed, embeddings, pools)
        for name in POLICIES:
            alphas[name].append(alpha := weighed(pool, name))
            for metric, value in measured(pool, name, alpha, seed).items():
                values[name][metric].append(value)
    ratio = len(pool.truth) / len(pool.positive)
    return {
        "log": Path(path).name,
        "training": len(pool.positive),
        "held_out": len(pool.truth),
        "splits": list(seeds),
        "values": values,
        "alphas": alphas,
        "ahead": {
            name: {
                metric: difference(values[DEFAULT][metric], values[name][metric], ratio)
                for metric in ("auc", "yield_at_90")
            }
            for name in POLICIES
            if name != DEFAULT
        },
    }


def weighed(pool: JudgedPool, policy: str) -> float:
    """α as `learn` chooses it, on the training half alone."""
    if len(ALPHAS[policy]) == 1:
        return ALPHAS[policy][0]
    return choose_alpha(pool.values, pool.positive, pool.sat, pool.ids, BUDGET, pool.folds, policy).alpha


def measured(pool: JudgedPool, policy: str, alpha: float, seed: int) -> dict[str, float | None]:
    """Held-out figures of one policy on one split."""
    problem = Pool.of(pool.values, pool.positive, pool.sat, pool.ids, BUDGET)
    draws = DRAWS if policy in DRAWN else 1
    found = [
        _figures(pool, np.sort(POLICIES[policy](problem, alpha, np.random.default_rng([seed, draw]))))
        for draw in range(draws)
    ]
    return {metric: _mean([one[metric] for one in found]) for metric in SHOWN}


def _figures(pool: JudgedPool, chosen: npt.NDArray[np.intp]) -> dict[str, float | None]:
    scores, tested = pool.values[:, chosen].sum(1), pool.held_out[:, chosen].sum(1)
    theta = theta_c(scores, pool.positive)
    window = fit_window(scores, pool.positive, theta)
    found = assess(tested, pool.truth, theta, window, np.random.default_rng(0), resamples=2)
    return {metric: getattr(found, "yield_rate" if metric == "yield_at_90" else metric).value for metric in SHOWN}


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def difference(ours: Sequence[float | None], theirs: Sequence[float | None], ratio: float) -> dict[str, float]:
    """Mean of the paired differences, its standard error over splits, and the corrected 95 % interval."""
    differences = np.array(ours, dtype=np.float64) - np.array(theirs, dtype=np.float64)
    low, high = resampled_interval(differences, ratio)
    error = float(differences.std(ddof=1) / np.sqrt(len(differences))) if len(differences) > 1 else float("nan")
    return {"mean": float(differences.mean()), "error": error, "low": low, "high": high}


def _mean_ahead(reports: Sequence[Mapping[str, Any]], name: str) -> dict[str, float]:
    return {
        metric: float(np.mean([report["ahead"][name][metric]["mean"] for report in reports]))
        for metric in ("auc", "yield_at_90")
    }


def asked(path: str, table: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of one table that need a model: `pollex learn` on the same splits."""
    for technique, options in TECHNIQUES[table].items():
        told = [arguments.adapted if option == "ADAPTED" else option for option in options]
        values: Values = {metric: [] for metric in SHOWN}
        failure = ""
        for seed in range(arguments.seed, arguments.seed + arguments.splits):
            found, failure = _learned(path, told, seed, arguments)
            if failure:
                break
            for metric in SHOWN:
                values[metric].append(found.get(metric))
        yield {"technique": technique, "options": told, "values": values, "failure": failure}


def _learned(
    path: str, options: Sequence[str], seed: int, arguments: argparse.Namespace
) -> tuple[dict[str, float | None], str]:
    """Held-out figures of one run, or why there are none. A store of its own: no run finds what another paid for."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).with_name("pollex")),
            "learn",
            path,
            "--json",
            "--seed",
            str(seed),
            *options,
        ]
        command += ["--model", arguments.model, "--store", folder, "--out", f"{folder}/rubrics.json"]
        command += ["--base-url", arguments.base_url] if arguments.base_url else []
        command += ["--domain", arguments.domain] if arguments.domain else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode not in (0, 3) or not done.stdout.strip():
        return {}, (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])["held_out"] or {}, ""


def in_words(report: Mapping[str, Any]) -> str:
    """The tables of one log."""
    lines = [
        f"\n{report['log']}: {len(report['splits'])} splits of {report['training']} to learn from and "
        f"{report['held_out']} held out; {BUDGET[0]} + {BUDGET[1]} rubrics, embedded pool",
        _header("Table 3, policies: mean ± sd"),
    ]
    for name in sorted(POLICIES, key=lambda name: (name != DEFAULT, name)):
        lines.append(_row(f"{name} (default)" if name == DEFAULT else name, report["values"][name]))
        lines += [_published(SAME[name])] if name in SAME else []
    for name, ahead in report["ahead"].items():
        lines.append(f"{DEFAULT} less {name}: " + "; ".join(_told(SHOWN[m], one) for m, one in ahead.items()))
    for table, rows in report.get("techniques", {}).items():
        lines.append(_header(f"{table}: mean ± sd"))
        for row in rows:
            name = OURS.get(row["technique"], row["technique"])
            failed = f"{name:<40}failed: {row['failure']}"
            lines += [failed if row["failure"] else _row(name, row["values"]), _published(row["technique"])]
    return "\n".join(lines)


def _header(title: str) -> str:
    return f"{title:<40}" + "".join(f"{name:>15}" for name in SHOWN.values())


def _row(name: str, values: Values) -> str:
    return f"{name:<40}" + "".join(f"{_cell(metric, values[metric]):>15}" for metric in SHOWN)


def _cell(metric: str, values: Sequence[float | None]) -> str:
    defined = [value * 100 if metric in PERCENT else value for value in values if value is not None]
    if metric == "auc":
        return spread(values)
    return f"{np.mean(defined):.1f} ± {np.std(defined, ddof=1):.1f}" if len(defined) > 1 else spread(values)


def _published(name: str) -> str:
    cells = "".join(f"{value:>15}" for value in PUBLISHED[name])
    return f"{'  published: ' + name:<40}" + cells + f"{'–':>15}" * 2


def _told(title: str, one: Mapping[str, float]) -> str:
    verdict = "ahead" if one["mean"] > one["error"] else "behind" if one["mean"] < -one["error"] else "level"
    return (
        f"{title} {one['mean']:+.3f} (standard error {one['error']:.3f}: {verdict}; "
        f"corrected 95 % interval {one['low']:+.3f} to {one['high']:+.3f})"
    )


def all_in_words(over_all: Mapping[str, Mapping[str, float]], logs: int) -> str:
    """What the default is ahead by on average over the logs."""
    lines = [f"\n{DEFAULT} less each, mean over {logs} logs:"]
    lines += [f"  {name:<16}AUC {one['auc']:+.3f}  YR@90 {one['yield_at_90']:+.3f}" for name, one in over_all.items()]
    return "\n".join(lines)


def needing_a_model() -> str:
    """What is left out without a model, as published."""
    lines = [
        "\nTables 1, 2 and 4 need a model: give --model (and --base-url). benchmarks/planted_world.py has them against "
        "a simulated one. As published:"
    ]
    for table, rows in TECHNIQUES.items():
        lines += [_header(table), *(_published(name) for name in rows)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
