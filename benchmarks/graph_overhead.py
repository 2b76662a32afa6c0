"""How much a graph and its checkpoints add to the work of its nodes, in one run.

    python benchmarks/graph_overhead.py LOG [--verb learn|score] [--label-field FIELD] [--rubrics SET] [--repeat 1]

Runs the verb on a log in a store of its own, and prints the time of the whole graph, that of its nodes alone, and the
rest, which is what LangGraph and the checkpoints take. With --repeat the log's conversations are scored so many times.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pollex
from pollex.graphs import run as runs
from pollex.services import learn_runs, score


class Clock:
    """Seconds in nodes, and in the whole graph.

    Attributes:
        nodes: Seconds in which at least one node worked.
    """

    def __init__(self) -> None:
        self.nodes = self.whole = 0.0
        self._working, self._since = 0, 0.0

    def timed(self, node: Callable[..., Any]) -> Callable[..., Any]:
        """Return a node that is timed."""

        async def work(state: Any, **given: Any) -> Any:
            if self._working == 0:
                self._since = time.perf_counter()
            self._working += 1
            try:
                return await node(state, **given)
            finally:
                self._working -= 1
                if self._working == 0:
                    self.nodes += time.perf_counter() - self._since

        return work


def measured(clock: Clock) -> None:
    """Have the next runs of graphs timed."""
    carry_out = runs.carry_out

    async def timed(graph: Any, *given: Any, **named: Any) -> Any:
        for spec in graph.nodes.values():
            spec.runnable.afunc = clock.timed(spec.runnable.afunc)
        began = time.perf_counter()
        try:
            return await carry_out(graph, *given, **named)
        finally:
            clock.whole += time.perf_counter() - began

    for module in (learn_runs, score):
        module.carry_out = timed  # type: ignore[attr-defined]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Time of a graph beside that of its nodes.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--verb", choices=["learn", "score"], default="learn")
    parser.add_argument("--label-field")
    parser.add_argument("--rubrics", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    clock = Clock()
    measured(clock)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        if options.verb == "learn":
            logs: Any = pollex.read_logs(options.log, label_field=options.label_field)
            pollex.learn(logs, store=store)
        else:
            logs = pollex.read_logs(options.log)
            one = [c.model_copy(update={"id": f"{c.id}-{n}"}) for n in range(options.repeat) for c in logs]
            pollex.score(one, options.rubrics, store=store)
        kept = (store / "checkpoints.sqlite").stat().st_size
    rest = clock.whole - clock.nodes
    print(f"graph {clock.whole:.2f} s, its nodes {clock.nodes:.2f} s, the rest {rest:.2f} s ({rest / clock.whole:.2%})")
    print(f"checkpoints {kept / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
