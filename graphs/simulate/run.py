"""Runs of the graph `simulate`: begin or resume one, and read its dialogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pollex.agents.llm.simulator import Scene, Simulator
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import BatchState
from pollex.graphs.run import RunSettings, config, digest, running
from pollex.graphs.simulate.state import SIMULATED, SimulateContext
from pollex.store.resume import conversations_of
from pollex.store.store import Store

ROUNDS = 2
"""Times the steps of other graphs, for `config`: a batch has five."""


@dataclass(frozen=True)
class Simulated:
    """The result of a run: the number of dialogues by outcome."""

    run: str
    counts: dict[str, int]


async def simulate(scenes: Sequence[Scene], simulator: Simulator, setting: RunSettings) -> Simulated:
    """Hold the dialogues of all scenes; `dialogues_of` reads them.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.simulate.graph import graph  # LangGraph takes a quarter of a second to import

    told = digest([[scene.id, asdict(scene.topic), asdict(scene.persona)] for scene in scenes])
    fingerprint = {"scenes": told, "simulator": simulator.fingerprint}
    store = setting.store
    async with running("simulate", fingerprint, setting, [simulator.name]) as run:
        done = {
            one.id
            for one in dialogues_of(store, run.id, scenes)
            if one.metadata["outcome"] not in setting.retry_outcomes
        }
        context = SimulateContext(
            **setting.of_run(run.id),
            scenes={scene.id: scene for scene in scenes},
            pending=[scene.id for scene in scenes if scene.id not in done],
            simulator=simulator,
        )
        context.progress.start("simulate", len(scenes), len(done))
        with context.tracer.span("simulate", kind="graph"):
            await graph.ainvoke(BatchState(), context=context, config=config(ROUNDS * len(scenes), setting.batch))
        counts = Counter(one.metadata["outcome"] for one in dialogues_of(store, run.id, scenes))
        status: Literal["partial", "done"] = "partial" if counts.keys() - {SIMULATED} else "done"
        store.finish(run.id, status, roles=[simulator.name], result={"outcomes": dict(counts)})
    return Simulated(run.id, dict(counts))


def dialogues_of(store: Store, run: str, scenes: Sequence[Scene]) -> list[Conversation]:
    """Return the stored dialogues of a run, in the order of the scenes."""
    kept = {one.id: one for one in conversations_of(store, run)}
    return [kept[scene.id] for scene in scenes if scene.id in kept]
