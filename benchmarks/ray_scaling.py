"""Speed-up of scoring on Ray with the number of workers, its overhead, and a plan for a hundred million conversations.

    python benchmarks/ray_scaling.py --data LOG [--rubrics SET] [--n 20000] [--unit-bytes BYTES]
    [--price .05] [--json]

The log is repeated until it has N conversations, each with an id of its own. It is scored into
parts by one process without Ray (the baseline), then by one and by two workers of a cluster on this
machine. Speeds are those between the first part and the last, so that starting isn't in them; what
a unit costs beside its work is measured with units of one conversation. The plan takes CPU, bytes
and memory of the baseline's stages, and assumes that the file system keeps up.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from small_form import BIKES, Findings, arguments_of, run

import pollex
from pollex.formats.fields import ReadOptions
from pollex.rooms.scale.formats.units import LogUnit, cut_into_units
from pollex.rooms.scale.services.part_writer import CONVERSATIONS_A_BATCH
from pollex.rooms.scale.services.parts import ClusterOptions, ScoringJob, read_unit, write_parquet
from pollex.rooms.scale.services.score_parts import SCORING_ENGINES
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.scorer import BatchScorer

HUNDRED_MILLION = 100_000_000
WORKERS = (16, 100, 500)
SMALL = 60
"""Units of one conversation, for the overhead."""


def main() -> int:
    """Print speeds, overhead and plan."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a log with thumbs, JSON lines")
    parser.add_argument("--rubrics", type=Path, help="a rubric set; else one is learned")
    parser.add_argument("--n", type=int, default=20_000, help="conversations to score")
    parser.add_argument("--unit-bytes", type=int, default=1_000_000, help="bytes of a unit")
    parser.add_argument(
        "--price", type=float, default=0.05, help="of a core for an hour, in your currency"
    )
    return run(parser, measure_all, ["--data", BIKES, "--n", "400"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        rubrics = given.rubrics or learned(given.data, Path(folder))
        log = repeated(given.data, given.n, Path(folder) / "log.jsonl")
        few = repeated(given.data, SMALL, Path(folder) / "few.jsonl")
        found = measured(RubricSet.load(rubrics), log, few, given.unit_bytes, Path(folder)) | {
            "n": given.n
        }
        found["plan"] = plan(found, log.stat().st_size / given.n, given.price)
    print(in_words(found))
    return Findings(figures=found, bars={"the plan has hours": bool(found["plan"])})


def learned(data: Path, folder: Path) -> Path:
    """A set learned from the log."""
    rubrics = pollex.learn(data, store=folder / "store")
    rubrics.save(folder / "rubrics.json")
    return folder / "rubrics.json"


def repeated(data: Path, n: int, out: Path) -> Path:
    """The log's conversations again and again, each with an id of its own."""
    lines = [
        json.loads(line) for line in data.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    with out.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({**lines[k % len(lines)], "id": f"c{k}"}) + "\n" for k in range(n)
        )
    return out


def measured(
    rubrics: RubricSet, log: Path, few: Path, unit_bytes: int, folder: Path
) -> dict[str, Any]:
    """Conversations a second of each engine, seconds of overhead a unit, and CPU by stage."""
    units = cut_into_units([str(log)], ReadOptions(), unit_bytes)
    small = cut_into_units([str(few)], ReadOptions(), few.stat().st_size // SMALL)
    found: dict[str, Any] = {"units": len(units), "stages": stages(rubrics, units)}
    overhead = {}
    for name, engine, workers in (
        ("one process", "one", 1),
        ("ray, 1 worker", "ray", 1),
        ("ray, 2 workers", "ray", 2),
    ):
        found[name] = speed(
            ScoringJob(rubrics=rubrics, out=made(folder / name), reading=ReadOptions()),
            engine,
            units,
            workers,
        )
        if workers == 1:
            job = ScoringJob(
                rubrics=rubrics, out=made(folder / f"{name}, small"), reading=ReadOptions()
            )
            overhead[engine] = seconds_a_unit(job, engine, small)
    base = found["one process"]
    found["overhead_ms"] = 1000 * (overhead["ray"] - overhead["one"])
    found["speed-up"] = {name: found[name] / base for name in ("ray, 1 worker", "ray, 2 workers")}
    found["efficiency"] = {
        name: found["speed-up"][name] / workers
        for name, workers in (("ray, 1 worker", 1), ("ray, 2 workers", 2))
    }
    return found


def made(folder: Path) -> str:
    """The address of a new folder."""
    folder.mkdir()
    return str(folder)


def speed(job: ScoringJob, engine: str, units: Sequence[LogUnit], workers: int) -> float:
    """Conversations a second between the first part and the last."""
    moments = []
    rows = []
    for _, part in SCORING_ENGINES[engine](job, units, ClusterOptions(workers=workers)):
        assert not isinstance(part, str), part
        moments.append(time.perf_counter())
        rows.append(part.rows)
    first = min(workers, len(rows) - 1)  # every worker has done one: all are warm
    return sum(rows[first:]) / (moments[-1] - moments[first - 1])


def seconds_a_unit(job: ScoringJob, engine: str, units: Sequence[LogUnit]) -> float:
    """Seconds of a unit of about one conversation, by one worker that is warm."""
    moments = [
        time.perf_counter() for _ in SCORING_ENGINES[engine](job, units, ClusterOptions(workers=1))
    ]
    return median(after - before for before, after in pairwise(moments))


def stages(rubrics: RubricSet, units: Sequence[LogUnit]) -> dict[str, float]:
    """CPU milliseconds a conversation by stage, bytes of a row, and most memory of this process in MB."""
    scorer = BatchScorer(rubrics)
    spent = dict.fromkeys(("read", "score", "write"), 0.0)
    n = 0
    size = 0
    for number, unit in enumerate(units[:4]):
        marks = [time.process_time()]
        conversations, _ = read_unit(unit, ReadOptions())
        marks.append(time.process_time())
        batches = [
            scorer.scores(conversations[at : at + CONVERSATIONS_A_BATCH])
            for at in range(0, len(conversations), CONVERSATIONS_A_BATCH)
        ]
        marks.append(time.process_time())
        content = write_parquet(batches, rubrics, ())
        marks.append(time.process_time())
        if number:  # the first one loads what is needed
            for name, begun, ended in zip(spent, marks, marks[1:], strict=False):
                spent[name] += ended - begun
            n = n + len(conversations)
            size = size + len(content)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {name: 1000 * seconds / n for name, seconds in spent.items()} | {
        "bytes": size / n,
        "memory_mb": memory,
    }


def plan(found: dict[str, Any], read: float, price: float) -> dict[str, Any]:
    """Hours, cost, memory and storage for a hundred million conversations, by the number of workers.

    Args:
        read: Bytes of a conversation in the log.
        price: Of a core for an hour.
    """
    stages = found["stages"]
    cpu = sum(stages[name] for name in ("read", "score", "write")) / 1000
    per_unit = found["n"] / found["units"]
    seconds = HUNDRED_MILLION * (cpu + found["overhead_ms"] / 1000 / per_unit)
    return {
        "core_hours": seconds / 3600,
        "cost": seconds / 3600 * price,
        "read_gb": HUNDRED_MILLION * read / 1e9,
        "written_gb": HUNDRED_MILLION * stages["bytes"] / 1e9,
        "hours": {str(workers): seconds / 3600 / workers for workers in WORKERS},
        "memory_gb": {str(workers): workers * stages["memory_mb"] / 1024 for workers in WORKERS},
    }


def in_words(found: dict[str, Any]) -> str:
    """The figures as lines."""
    stages = found["stages"]
    planned = found["plan"]
    lines = [f"{found['n']} conversations in {found['units']} units"]
    lines += [
        f"{name:16} {found[name]:8.0f} conversations/s"
        for name in ("one process", *found["speed-up"])
    ]
    lines += [
        f"{name:16} speed-up {found['speed-up'][name]:.2f}, efficiency {found['efficiency'][name]:.2f}"
        for name in found["speed-up"]
    ]
    lines.append(f"overhead of Ray  {found['overhead_ms']:8.1f} ms a unit")
    shares = ", ".join(f"{name} {stages[name]:.2f}" for name in ("read", "score", "write"))
    lines.append(f"CPU a conversation: {shares} ms; a worker has {stages['memory_mb']:.0f} MB")
    lines.append(
        f"10^8 conversations: {planned['core_hours']:.0f} core-hours, cost {planned['cost']:.2f},"
        f" {planned['read_gb']:.0f} GB read, {planned['written_gb']:.0f} GB written"
    )
    lines += [
        f"  {workers:>4} workers: {hours:6.1f} h, {planned['memory_gb'][workers]:.0f} GB of memory"
        for workers, hours in planned["hours"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
