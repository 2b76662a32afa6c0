"""`simulate`: holds dialogues of a simulated user with each system, then asks about their quality."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.graphs.context import BatchState, Item, context_of
from pollex.graphs.simulate.state import SimulateContext, failed, simulated
from pollex.rubrics.answers import Unanswered
from pollex.store.rows import conversation_rows


async def plan_batch(state: BatchState, runtime: Runtime[SimulateContext]) -> BatchState:
    """Plan the next batch of dialogues."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        span.outputs(planned["batch"])
    return planned


def fan_out(state: BatchState) -> list[Send] | str:
    """Make one task for each dialogue of the batch; end when none is left."""
    return [Send("converse", Item(id=id_)) for id_ in state["batch"]] or END


async def converse(state: Item, runtime: Runtime[SimulateContext]) -> BatchState:
    """Hold one dialogue, or store why there is none."""
    context = runtime.context
    scene = context.scenes[state["id"]]
    async with context.semaphore, context.tracer.span("converse", kind="role", item=scene.id) as span:
        found = await context.simulator.dialogue(scene)
        if isinstance(found, Unanswered):
            span.failed(f"{found.outcome}: {found.detail}")
            context.store.put(conversation_rows(context.run, [failed(scene, found)]))
            context.end(scene.id, "simulate")
        else:
            span.outputs([f"{len(found.turns)} turns, ended: {found.ended}"])
            context.held[scene.id] = found
    return {}


async def gather(state: BatchState, runtime: Runtime[SimulateContext]) -> BatchState:
    """Record that the dialogues of the batch are held."""
    with runtime.context.tracer.span("gather", kind="node", inputs=state["batch"]):
        return {}


def fan_out_held(state: BatchState, runtime: Runtime[SimulateContext]) -> list[Send] | str:
    """Make one task for each dialogue that was held."""
    held = [id_ for id_ in state["batch"] if id_ in runtime.context.held]
    return [Send("check_quality", Item(id=id_)) for id_ in held] or "commit_batch"


async def check_quality(state: Item, runtime: Runtime[SimulateContext]) -> BatchState:
    """Ask the questions of quality about one dialogue, and store it with the answers."""
    context = runtime.context
    scene, dialogue = context.scenes[state["id"]], context.held.pop(state["id"])
    async with context.semaphore, context.tracer.span("check_quality", kind="role", item=scene.id) as span:
        quality = await context.simulator.quality(scene, dialogue)
        if isinstance(quality, Unanswered):
            span.failed(f"{quality.outcome}: {quality.detail}")
        # Inside the span, which is written after it: whoever finds the span of a killed run finds the dialogue, too.
        context.store.put(conversation_rows(context.run, [simulated(scene, dialogue, quality)]))
    context.end(scene.id, "simulate")
    return {}


async def commit_batch(state: BatchState, runtime: Runtime[SimulateContext]) -> BatchState:
    """Commit the batch's dialogues."""
    with runtime.context.tracer.span("commit_batch", kind="node", inputs=state["batch"]):
        await runtime.context.close(state["batch"], "simulate")
    return {}


def build() -> StateGraph[BatchState, SimulateContext, BatchState, BatchState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(BatchState, context_schema=SimulateContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("converse", converse)
    graph.add_node("gather", gather)
    graph.add_node("check_quality", check_quality)
    graph.add_node("commit_batch", commit_batch)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["converse", END])
    graph.add_edge("converse", "gather")
    graph.add_conditional_edges("gather", fan_out_held, ["check_quality", "commit_batch"])
    graph.add_edge("check_quality", "commit_batch")
    graph.add_edge("commit_batch", "plan_batch")
    return graph


graph = build().compile(name="simulate")
