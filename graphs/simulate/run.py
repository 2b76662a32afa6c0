"""Runs of the graph `simulate`: begin or resume one, and read its dialogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pollex.agents.llm.simulator import Scene, Simulator
from pollex.conversations.conversation import Conversation
from pollex.graphs.run import RunSettings, carry_out, digest, running
from pollex.graphs.simulate import SIMULATED
from pollex.store.resume import conversations_of
from pollex.store.store import Store


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
    from pollex.graphs.simulate.graph import SimulateContext, SimulateWork, build  # LangGraph takes a while

    told = digest([[scene.id, asdict(scene.topic), asdict(scene.persona)] for scene in scenes])
    fingerprint = {"scenes": told, "simulator": simulator.fingerprint}
    async with running("simulate", fingerprint, setting, [simulator.name]) as run:
        kept = dialogues_of(setting.store, run.id, scenes)
        done = {one.id: one.metadata["outcome"] for one in kept}
        done = {id_: outcome for id_, outcome in done.items() if outcome not in setting.retry_outcomes}
        live = SimulateWork(
            **setting.of_run(run.id),
            stage="simulate",
            total=len(scenes),
            pending={scene.id: None for scene in scenes if scene.id not in done},
            outcomes=Counter(done.values()),
            fine=frozenset({SIMULATED}),
            workers=[simulator.name],
            scenes={scene.id: scene for scene in scenes},
            simulator=simulator,
        )
        state = await carry_out(build(), live, SimulateContext.of(setting.arguments))
    return Simulated(run.id, state["outcomes"])


def dialogues_of(store: Store, run: str, scenes: Sequence[Scene]) -> list[Conversation]:
    """Return the stored dialogues of a run, in the order of the scenes."""
    kept = {one.id: one for one in conversations_of(store, run)}
    return [kept[scene.id] for scene in scenes if scene.id in kept]
