"""RUBICON's Tables 1–4 with our figures beside the published ones.

    python benchmarks/rubicon_tables.py --data LOG [LOG …] [--splits 20] [--seed 0] [--pools FOLDER]
    [--json]
    python benchmarks/rubicon_tables.py --data LOG --model M [--base-url U] [--domain PROFILE]
    [--store FOLDER]

Table 3, the policies, runs on the embedded pool of each log: 10 + 10 rubrics, stratified 50:50
splits (each split's seed is its number), α by cross-validation on the training half, every figure
on the other half. Policies that draw are the mean of 20 draws a split. The last column, accuracy
outside the window, says what a yield is worth.

Tables 1, 2 and 4 need a model: each row is what `pollex learn` comes to with the options that stand
at its end.
Without `--model` they are left out, and `benchmarks/planted_world.py` has them against a simulated
one. All rows and splits share one store, so that no call is paid for twice; `--store` keeps it for
another run, or to go on after one that was stopped. What a row sent is what none before it had
asked; a few tiny calls that probe the endpoint come to it.

Differences are paired by split. Two errors stand beside each: the standard error over splits, which
is too small as splits share conversations, and the t-interval corrected for that (Nadeau and Bengio
2003, doi:10.1023/A:1024068626366). The published figures are of 100 conversations with a C#
debugging assistant and GPT-4: another log and another judge.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from embedded_pools import JudgedPool, judged_pool
from rubicon import resampled_interval, spread
from small_form import FEW, Findings, arguments_of, run
from techniques import ADAPTED, PUBLISHED, RUBICON, TABLES, Technique, learnt

from pollex.conversations.logs import Logs
from pollex.conversations.splits import split_conversations
from pollex.errors import Interrupted, PollexError
from pollex.formats.read_logs import read_logs
from pollex.measures.classification import assess_scores_against_labels
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.learning.settings import LearnSettings
from pollex.runs.options import ModelOptions
from pollex.selection.alpha import choose_alpha_by_cross_validation
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.policies import (
    CROSS_VALIDATED_ALPHAS_BY_POLICY,
    DEFAULT_SELECTION_POLICY_NAME,
    SELECTION_POLICY_BY_NAME,
)
from pollex.selection.pool import Pool
from pollex.selection.threshold import fit_uncertainty_window
from pollex.store.store import Store

BUDGET = (10, 10)
DRAWS = 20
DRAWN = ("ucb",)

SHOWN = {
    "delta_netsat": "ΔNetSAT",
    "yield_rate": "YR@90",
    "accuracy": "acc",
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "auc": "AUC",
    "confident_accuracy": "acc outside",
}
PERCENT = ("yield_rate", "accuracy", "precision", "recall", "f1", "confident_accuracy")

SAME = {
    "greedy": "RUBICON",
    "ucb": "UCB",
    "brute_force": "brute force",
    "correctness": "correctness only",
}
"""Our policies by the paper's names."""

Values = dict[str, list[float | None]]
"""By metric: one value a split."""

USED = {"asked": "calls", "sent": "sent", "prompt": "tokens read", "completion": "written"}
"""Of a row's usage, what is told."""


def main() -> int:
    """Print the tables of every log, then what the default is ahead by over all of them."""
    return run(parser_of(), measure_all, ["--data", FEW, "--splits", "1"])


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    profile = DomainProfile.load(arguments.domain) if arguments.domain else DomainProfile.neutral()
    seeds = range(arguments.seed, arguments.seed + arguments.splits)
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in arguments.data:
            logs = read_logs(path)
            report = policies(
                logs, profile, seeds, Path(arguments.embeddings or scratch), arguments.pools
            )
            report["log"] = Path(path).name
            print(in_words(report))
            if arguments.model:
                with Store.open(arguments.store or Path(scratch) / "store") as store:
                    report["techniques"] = list(tables(logs, profile, seeds, store, arguments))
                report["behind"] = behind(
                    report["techniques"], report["held_out"] / report["training"]
                )
                print(behind_in_words(report["behind"]))
            reports.append(report)
    over_all = {
        name: _mean_ahead(reports, name)
        for name in SELECTION_POLICY_BY_NAME
        if name != DEFAULT_SELECTION_POLICY_NAME
    }
    print(all_in_words(over_all, len(reports)))
    if not arguments.model:
        print(needing_a_model())
    return Findings(
        figures={"logs": reports, "over_all": over_all},
        bars={"every policy has its row": len(over_all) >= 4},
    )


def parser_of() -> argparse.ArgumentParser:
    parser = arguments_of(__doc__)
    parser.add_argument("--data", nargs="+", required=True, metavar="LOG")
    parser.add_argument("--domain", help="a domain profile; the neutral one if left out")
    parser.add_argument(
        "--adapted", default="generic_debugging", help="the generic set adapted to the domain"
    )
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first split; the others follow")
    parser.add_argument(
        "--embeddings", help="folder of cached embeddings; an empty temporary one if left out"
    )
    parser.add_argument(
        "--pools", type=Path, help="folder in which judged pools are kept for another run"
    )
    parser.add_argument("--model", help="for the rows that need one")
    parser.add_argument("--base-url", help="of the model's endpoint")
    parser.add_argument(
        "--store", type=Path, help="folder of the model's answers; a temporary one if left out"
    )
    return parser


def policies(
    logs: Logs, profile: DomainProfile, seeds: Sequence[int], embeddings: Path, pools: Path | None
) -> dict[str, Any]:
    """Held-out figures of every policy on the same pools, and what the default is ahead by."""
    values: dict[str, Values] = {
        name: {metric: [] for metric in SHOWN} for name in SELECTION_POLICY_BY_NAME
    }
    alphas: dict[str, list[float]] = {name: [] for name in SELECTION_POLICY_BY_NAME}
    for seed in seeds:
        pool = judged_pool(logs, profile, seed, embeddings, pools)
        for name in SELECTION_POLICY_BY_NAME:
            alphas[name].append(alpha := weighed(pool, name))
            for metric, value in measured(pool, name, alpha, seed).items():
                values[name][metric].append(value)
    ratio = len(pool.truth) / len(pool.positive)
    return {
        "training": len(pool.positive),
        "held_out": len(pool.truth),
        "splits": list(seeds),
        "values": values,
        "alphas": alphas,
        "ahead": {
            name: {
                metric: difference(
                    values[DEFAULT_SELECTION_POLICY_NAME][metric], values[name][metric], ratio
                )
                for metric in ("auc", "yield_rate")
            }
            for name in SELECTION_POLICY_BY_NAME
            if name != DEFAULT_SELECTION_POLICY_NAME
        },
    }


def weighed(pool: JudgedPool, policy: str) -> float:
    """α as `learn` chooses it, on the training half alone."""
    if len(CROSS_VALIDATED_ALPHAS_BY_POLICY[policy]) == 1:
        return CROSS_VALIDATED_ALPHAS_BY_POLICY[policy][0]
    return choose_alpha_by_cross_validation(
        pool.values, pool.positive, pool.sat, pool.ids, BUDGET, pool.folds, policy
    ).alpha


def measured(pool: JudgedPool, policy: str, alpha: float, seed: int) -> dict[str, float | None]:
    """Held-out figures of one policy on one split."""
    problem = Pool.of(pool.values, pool.positive, pool.sat, pool.ids, BUDGET)
    draws = DRAWS if policy in DRAWN else 1
    found = [
        _figures(
            pool,
            np.sort(
                SELECTION_POLICY_BY_NAME[policy](
                    problem, alpha, np.random.default_rng([seed, draw])
                )
            ),
        )
        for draw in range(draws)
    ]
    return {metric: _mean([one[metric] for one in found]) for metric in SHOWN}


def _figures(pool: JudgedPool, chosen: npt.NDArray[np.intp]) -> dict[str, float | None]:
    scores = pool.values[:, chosen].sum(1)
    tested = pool.held_out[:, chosen].sum(1)
    theta = compute_midpoint_of_class_means(scores, pool.positive)
    window = fit_uncertainty_window(scores, pool.positive, theta)
    found = assess_scores_against_labels(
        tested, pool.truth, theta, window.confident(tested), np.random.default_rng(0), resamples=2
    )
    return {metric: getattr(found, metric).value for metric in SHOWN}


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


Difference = dict[str, float | None]
"""`mean`, `error`, `low` and `high`; None: too few splits for it."""


def difference(
    ours: Sequence[float | None], theirs: Sequence[float | None], ratio: float
) -> Difference:
    """Mean of paired differences where both are defined, its standard error over splits, the corrected interval."""
    both = [
        (mine, other)
        for mine, other in zip(ours, theirs, strict=True)
        if mine is not None and other is not None
    ]
    differences = np.array([mine - other for mine, other in both])
    if len(differences) < 2:
        return {"mean": _mean(differences.tolist()), "error": None, "low": None, "high": None}
    low, high = resampled_interval(differences, ratio)
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return {"mean": float(differences.mean()), "error": error, "low": low, "high": high}


def _mean_ahead(reports: Sequence[Mapping[str, Any]], name: str) -> Difference:
    ahead = [report["ahead"][name] for report in reports]
    return {
        metric: _mean([one[metric]["mean"] for one in ahead]) for metric in ("auc", "yield_rate")
    }


def tables(
    logs: Logs,
    profile: DomainProfile,
    seeds: Sequence[int],
    store: Store,
    arguments: argparse.Namespace,
) -> Iterator[dict[str, Any]]:
    """The rows that take a model, each told as soon as it is there. What stands in two tables is learnt once."""
    model = ModelOptions(model=arguments.model, base_url=arguments.base_url)
    known: dict[str, dict[str, Any]] = {}
    for table, techniques in TABLES.items():
        print(_header(f"{table}: mean ± sd"))
        for technique in techniques:
            how = (
                replace(technique, rubrics=arguments.adapted)
                if technique.rubrics == ADAPTED
                else technique
            )
            if how.options not in known:
                known[how.options] = figures_of(how, logs, profile, seeds, store, model)
            row = {"table": table, "technique": how.name, **known[how.options]}
            print("\n".join(row_in_words(row, how)))
            yield row


def figures_of(
    how: Technique,
    logs: Logs,
    profile: DomainProfile,
    seeds: Sequence[int],
    store: Store,
    model: ModelOptions,
) -> dict[str, Any]:
    """Held-out figures of a technique on the splits of the policies, and what it asked; or why there are none."""
    values: Values = {metric: [] for metric in SHOWN}
    used = dict.fromkeys(USED, 0)
    row: dict[str, Any] = {
        "options": how.options,
        "values": values,
        "used": used,
        "unscored": 0,
        "failure": "",
    }
    for seed in seeds:
        try:
            rubrics, usage = asyncio.run(learnt(how, logs, profile, store, split=seed, model=model))
        except Interrupted:
            raise
        except PollexError as error:
            return row | {"failure": f"split {seed}: {error}"}
        assert rubrics.held_out is not None, "half is held out"
        for metric in SHOWN:
            values[metric].append(getattr(rubrics.held_out, metric).value)
        for name in USED:
            used[name] += getattr(usage, name)
        row["unscored"] += (
            len(split_conversations(logs.learnable, LearnSettings().test_fraction, seed).test)
            - rubrics.held_out.n
        )
    return row


def behind(rows: Sequence[Mapping[str, Any]], ratio: float) -> dict[str, Difference]:
    """AUC of each technique less that of RUBICON on the same splits; nothing where either failed."""
    whole = {row["technique"]: row["values"]["auc"] for row in rows if not row["failure"]}
    reference = whole.pop(RUBICON, None)
    return (
        {}
        if reference is None
        else {name: difference(auc, reference, ratio) for name, auc in whole.items()}
    )


def in_words(report: Mapping[str, Any]) -> str:
    """The tables of one log."""
    lines = [
        f"\n{report['log']}: {len(report['splits'])} splits of {report['training']} to learn from and "
        f"{report['held_out']} held out; {BUDGET[0]} + {BUDGET[1]} rubrics, embedded pool",
        _header("Table 3, policies: mean ± sd"),
    ]
    for name in sorted(
        SELECTION_POLICY_BY_NAME, key=lambda name: (name != DEFAULT_SELECTION_POLICY_NAME, name)
    ):
        lines.append(
            _row(
                f"{name} (default)" if name == DEFAULT_SELECTION_POLICY_NAME else name,
                report["values"][name],
            )
        )
        lines += [_published(SAME[name])] if name in SAME else []
    for name, ahead in report["ahead"].items():
        lines.append(
            f"{DEFAULT_SELECTION_POLICY_NAME} less {name}: "
            + "; ".join(_told(SHOWN[m], one) for m, one in ahead.items())
        )
    return "\n".join(lines)


def row_in_words(row: Mapping[str, Any], how: Technique) -> Iterator[str]:
    """One row of ours with what it was told and what it asked, and the paper's under it."""
    asked = ", ".join(f"{row['used'][name]:,} {said}" for name, said in USED.items())
    if row["failure"]:
        yield f"{how.name:<40}failed: {row['failure']}"
    else:
        yield f"{_row(how.name, row['values'])}  {how.options} ({asked})"
    if row["unscored"]:
        yield f"  held-out conversations without a score, over all splits: {row['unscored']}"
    if how.published:
        yield _published(how.paper)


def behind_in_words(gaps: Mapping[str, Difference]) -> str:
    """The differences to RUBICON, a line a technique."""
    return "\n".join(_told(f"{name} less {RUBICON}: AUC", one) for name, one in gaps.items())


def _header(title: str) -> str:
    return _line(title, SHOWN.values())


def _row(name: str, values: Values) -> str:
    return _line(name, [_cell(metric, values[metric]) for metric in SHOWN])


def _cell(metric: str, values: Sequence[float | None]) -> str:
    if metric == "auc":
        return spread(values)
    scale = 100 if metric in PERCENT else 1
    return spread([None if value is None else value * scale for value in values], digits=1)


def _published(name: str) -> str:
    return _line(f"  published: {name}", [*map(str, PUBLISHED[name]), "–", "–"])


def _line(name: str, cells: Iterable[str]) -> str:
    return f"{name:<40}" + "".join(f" {cell:>15}" for cell in cells)


def _told(title: str, one: Difference) -> str:
    mean = one["mean"]
    error = one["error"]
    if mean is None or error is None:
        return f"{title} {_signed(mean)}" + (" (one split only)" if mean is not None else "")
    verdict = "ahead" if mean > error else "behind" if mean < -error else "level"
    return (
        f"{title} {_signed(mean)} (standard error {error:.3f}: {verdict}; "
        f"corrected 95 % interval {_signed(one['low'])} to {_signed(one['high'])})"
    )


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}"


def all_in_words(over_all: Mapping[str, Difference], logs: int) -> str:
    """What the default is ahead by on average over the logs."""
    title = f"mean over {logs} logs" if logs > 1 else "on the one log"
    lines = [f"\n{DEFAULT_SELECTION_POLICY_NAME} less each, {title}:"]
    for name, one in over_all.items():
        lines.append(f"  {name:<16}AUC {_signed(one['auc'])}  YR@90 {_signed(one['yield_rate'])}")
    return "\n".join(lines)


def needing_a_model() -> str:
    """What is left out without a model, as published."""
    lines = [
        "\nTables 1, 2 and 4 need a model: give --model (and --base-url). benchmarks/planted_world.py has them against "
        "a simulated one. As published:"
    ]
    for table, techniques in TABLES.items():
        lines += [_header(table), *(_published(one.paper) for one in techniques if one.published)]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
