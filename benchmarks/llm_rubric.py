"""The tables of LLM-Rubric, reproduced on its released data, and what else can be reached there.

    python benchmarks/llm_rubric.py --data FOLDER [--seeds 5] [--splits 5] [--quick]

FOLDER has the four released tables. Everything is about Q0, the overall satisfaction from 1 to 4.

Synthetic: cross-validation by dialogue, five folds, pooled held-out predictions; run i takes seed i
    and split i mod
splits, a model without chance only the splits. Real: learnt on all synthetic sheets, measured on
the real ones. No choice looks at a real label: what is called chosen was chosen on synthetic ones,
within each fold's training part. The row "chosen once" is what a single choice on all synthetic
sheets reaches by the same cross-validation: a little too good, since its choice has seen what it is
measured on, but what a table of models with the best one in bold says.

± is the standard deviation over runs; intervals are 95 % bootstrap intervals over dialogues of the
mean over runs. p is that of a paired permutation test of squared errors, two-sided, against the
expected LLM answer and against the chosen model (the oracle among the upper bounds); * is under
0.05, without correction for how many there are. The paper's RMSE can't be had together with its
correlations; it stands there for completeness.

Source: Hashemi et al. 2024, doi:10.18653/v1/2024.acl-long.745.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from llm_rubric_data import made_tables
from llm_rubric_methods import (
    BEGUN,
    CHOSEN,
    CHOSEN_ONCE,
    CHOSEN_SHIFT,
    CURVE,
    CV,
    NETWORK,
    ORDINAL,
    REAL,
    SYSTEMS,
    ablations,
    bounds,
    everything,
    predictors,
)
from llm_rubric_runs import Done, Material, Task, all_done
from llm_rubric_tables import (
    Rows,
    ablation_table,
    bars,
    bounds_table,
    calibration_table,
    curve_table,
    each_system_table,
    first_table,
    rows_of,
    short_table,
    systems_table,
)
from llm_rubric_targets import targets
from small_form import Findings, arguments_of, block, run

NESTED = (CHOSEN, CHOSEN_ONCE, CHOSEN_SHIFT)
"""Cross-validate to choose."""


def main() -> int:
    """Print all tables."""
    parser = arguments_of(__doc__)
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="the released tables; made ones if left out"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--splits", type=int, default=5, help="of the folds")
    parser.add_argument(
        "--repeats", type=int, default=5, help="of the learning curve, in each split"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ROW", help=f"these rows alone: {', '.join(everything())}"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return run(
        parser,
        measure_all,
        [
            "--seeds",
            "1",
            "--splits",
            "1",
            "--repeats",
            "1",
            "--only",
            "expected",
            "judge",
            "ordinal",
        ],
    )


def measure_all(arguments: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    tasks = [
        task for task in planned(arguments) if not arguments.only or task.key in arguments.only
    ]
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or made_tables(Path(folder))
        done = all_done(tasks, data, arguments.processes)
        material = Material.read(data)
        print(in_words(done, material))

    # what the page has: who was measured, and the rows that matter
    rows = rows_of(done)
    texts = {
        "sheets": sizes_of(material),
        "synthetic": short_table(rows, CV),
        "real": short_table(rows, REAL),
        "ablations": block(ablation_table(rows, NETWORK, CV)),
    }
    all_bars = {"every task is done": len(done) == len(tasks) > 0} | bars(rows)
    return Findings(texts, bars=all_bars)


def planned(arguments: argparse.Namespace) -> list[Task]:
    """All that is to be computed, the likely longest first."""
    tasks = list(_tasks(arguments.seeds, arguments.splits, arguments.repeats, arguments.quick))
    slow = [BEGUN, *NESTED, NETWORK, "heads", "authors", *ablations(NETWORK)]
    return sorted(tasks, key=lambda task: slow.index(task.key) if task.key in slow else len(slow))


def _tasks(seeds: int, splits: int, repeats: int, quick: bool) -> Iterator[Task]:
    for key, method in (predictors() | bounds()).items():
        # what takes minutes has fewer runs than the others
        seeds_of_row = min(seeds, method.runs or seeds)
        runs = seeds_of_row if method.seeded else splits
        if key != CHOSEN_SHIFT:
            yield from (
                Task(key, CV, seed=run if method.seeded else 0, split=run % splits)
                for run in range(runs)
            )
        if key in predictors() and key not in NESTED:
            yield Task(key, SYSTEMS)
        # One judge a real dialogue: there are no others.
        if not key.startswith("others") and key != CHOSEN_ONCE:
            runs = seeds_of_row if method.seeded else 1
            yield from (Task(key, REAL, seed=seed) for seed in range(runs))
    for key in ablations(ORDINAL):
        yield from (Task(key, CV, split=split) for split in range(splits))
    if not quick:
        yield from (
            Task(key, CV, seed=seed, split=seed % splits)
            for key in ablations(NETWORK)
            for seed in range(seeds)
        )
    yield from (
        Task(ORDINAL, CURVE, seed=split, split=split, repeats=repeats) for split in range(splits)
    )


def in_words(done: list[Done], material: Material) -> str:
    """Everything, for people."""
    rows = rows_of(done)
    parts = [
        (sizes_of(material), ""),
        ("Table 1. Q0 of synthetic dialogues, cross-validation", first_table(rows, CV)),
        ("Table 1. Q0 of real dialogues, learnt on synthetic ones", first_table(rows, REAL)),
        (
            "Leaving one synthetic system out: by this the choice under shift is made",
            systems_table(rows),
        ),
        (
            "The same, log-loss by the system left out",
            each_system_table(rows, material.synthetic.system),
        ),
        ("Table 2. Upper bounds, synthetic", bounds_table(rows, CV)),
        ("Table 2. Upper bounds, real", bounds_table(rows, REAL)),
        ("Table 2. Ablations of the network, synthetic", ablation_table(rows, NETWORK, CV)),
        ("Table 2. Ablations of the ordinal model, synthetic", ablation_table(rows, ORDINAL, CV)),
        ("Table 3. Calibration error by answer, synthetic", calibration_table(rows, CV)),
        ("Table 3. Calibration error by answer, real", calibration_table(rows, REAL)),
        ("Learning curve, synthetic", curve_table(done)),
        ("What was chosen", _choices(rows)),
        ("Targets", "\n".join(map(str, targets(rows)))),
        ("Seconds by row, one thread", _seconds(done)),
    ]
    return "\n\n".join(f"{title}\n{body}".rstrip() for title, body in parts)


def sizes_of(material: Material) -> str:
    """How many sheets there are, of how many dialogues, by how many judges."""
    by_name = {"synthetic": material.synthetic, "real": material.real}
    sizes = []
    for name, sheets in by_name.items():
        dialogues = len(set(sheets.dialogue.tolist()))
        judges = len(set(sheets.judges))
        sizes.append(f"{len(sheets)} sheets of {dialogues} {name} dialogues by {judges} judges")
    return "; ".join(sizes)


def _choices(rows: Rows) -> str:
    """By what is learnt on all synthetic sheets; the choices within folds are alike, and fifty."""
    lines = []
    for (key, where), row in rows.items():
        notes = Counter(note for note in row.notes if note) if where == REAL else {}
        lines += [
            f"{key}, {count} of {len(row.notes)} runs: {note}" for note, count in notes.items()
        ]
    return "\n".join(lines)


def _seconds(done: list[Done]) -> str:
    spent: dict[str, float] = {}
    for one in done:
        spent[one.task.key] = spent.get(one.task.key, 0) + one.seconds
    return ", ".join(
        f"{key} {seconds:.0f}" for key, seconds in sorted(spent.items(), key=lambda pair: -pair[1])
    )


if __name__ == "__main__":
    raise SystemExit(main())
