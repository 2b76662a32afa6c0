"""How well a built-in judge answers a model's rubrics, learned from the model's own answers.

    python benchmarks/distill.py LOGS… --rubrics RUBRICS --store STORE [--base-url URL]
    [--group-field FIELD]
    python benchmarks/distill.py --recorded
    python benchmarks/distill.py --simulated [--conversations 400] [--seed 0]

The first reads answers that were paid for, and asks nobody; `--recorded` those of the recorded run
of the bundled log, which it replays. `--simulated` learns from a SIMULATED model in a planted
world first: its figures say whether distilling works, not how well a real model's answers can be
learned.
Printed are the mean correlation with the model's answers by cross-fitting over conversations, what
AUC and log-loss lose on held-out conversations, and the calls that are saved, with what asking
again in doubtful cases buys.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from small_form import BIKES, Findings, arguments_of, run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "endurance"))
from planted.world import World
from protocol_server import ProtocolServer

import pollex
from pollex.cli.session import Screen, show_result
from pollex.formats.fields import ReadOptions
from pollex.gateway.recorded import RECORDED_URL
from pollex.graphs.context import NullProgress
from pollex.rooms.scale.services.distill import DistillResult, distill_rubric_set
from pollex.runs.options import ModelOptions, RunOptions

DEBUGGING = Path(__file__).parents[1] / "examples" / "debugging.toml"


def main() -> int:
    """Print the figures."""
    parser = arguments_of(__doc__)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--rubrics", type=Path)
    parser.add_argument("--store", type=Path, default=Path(".pollex"))
    parser.add_argument("--base-url")
    parser.add_argument("--group-field", help="field of the group that the set was split by")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument(
        "--conversations", type=int, default=400, help="of the planted world, half of them held out"
    )
    parser.add_argument("--seed", type=int, default=0)
    return run(parser, measure_all, ["--simulated", "--conversations", "40"])


def measure_all(asked: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    if asked.simulated:
        name = "a SIMULATED model in a planted world"
        result = simulated(asked.conversations, asked.seed)
    elif asked.recorded:
        name = "a large language model, recorded"
        result = recorded()
    else:
        name = str(asked.rubrics)
        result = distilled(
            asked.logs, asked.rubrics, asked.store, asked.base_url, asked.group_field
        )
    told(name, result)
    return Findings(bars={"something is distilled": bool(result.rubrics.rubrics)})


def told(what: str, found: DistillResult) -> None:
    """Print one result."""
    print(f"Distilled from {what}, {found.n} conversations\n")
    with Screen() as screen:
        show_result(screen, found.told())


def distilled(
    logs: list[str], rubrics: Path, store: Path, url: str | None, group_field: str | None = None
) -> DistillResult:
    """Distill without writing anything but the run."""
    return distill_rubric_set(
        logs,
        rubrics,
        out=None,
        least=-1.0,
        reading=ReadOptions(group_field=group_field),
        run=RunOptions(store),
        model=ModelOptions(base_url=url),
        progress=NullProgress(),
    )


def recorded() -> DistillResult:
    """Replay the recorded run, and distill what its model answered."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        command = [sys.executable, "-m", "pollex", "demo", "--recorded", "--out", str(demo)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)  # noqa: S603 - ours
        return distilled([BIKES], demo / "rubrics.json", demo / ".pollex", RECORDED_URL, "user_id")


def simulated(conversations: int, seed: int) -> DistillResult:
    """Learn by a simulated model, and distill what it answered."""
    with (
        tempfile.TemporaryDirectory() as name,
        ProtocolServer(script=[{"do": "planted", "reader": {}}]) as server,
    ):
        folder = Path(name)
        log = World(seed).write_log(folder / "log.jsonl", conversations)
        pollex.learn(
            log,
            out=folder / "rubrics.json",
            domain=DEBUGGING,
            model="planted",
            store=folder / "store",
            base_url=server.url,
            without=frozenset({"built-in"}),
        )
        return distilled([str(log)], folder / "rubrics.json", folder / "store", server.url)


if __name__ == "__main__":
    raise SystemExit(main())
