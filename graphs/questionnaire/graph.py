"""`ask`: asks every question of a questionnaire about each conversation, one question in a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.roles import Judge
from pollex.graphs.ask import ask
from pollex.graphs.context import BatchContext, BatchState, ConversationIndex, Item, context_of
from pollex.rubrics.answers import Question


@dataclass(frozen=True, kw_only=True)
class AskContext(BatchContext):
    """The runtime context of the nodes of `ask`."""

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]


async def plan_batch(state: BatchState, runtime: Runtime[AskContext]) -> BatchState:
    """Plan the next batch of conversations."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        span.outputs(planned["batch"])
    return planned


def fan_out(state: BatchState) -> list[Send] | str:
    """Make one task for each conversation of the batch; end when none is left."""
    return [Send("ask_questions", Item(id=id_)) for id_ in state["batch"]] or END


async def ask_questions(state: Item, runtime: Runtime[AskContext]) -> BatchState:
    """Ask all questions about one conversation."""
    context = runtime.context
    await ask(context, "ask_questions", context.judge, context.shelf[state["id"]], context.questions)
    context.end(state["id"], "ask")
    return {}


async def commit_batch(state: BatchState, runtime: Runtime[AskContext]) -> BatchState:
    """Commit the batch's answers."""
    with runtime.context.tracer.span("commit_batch", kind="node", inputs=state["batch"]):
        await runtime.context.close(state["batch"], "ask")
    return {}


def build() -> StateGraph[BatchState, AskContext, BatchState, BatchState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(BatchState, context_schema=AskContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("ask_questions", ask_questions)
    graph.add_node("commit_batch", commit_batch)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["ask_questions", END])
    graph.add_edge("ask_questions", "commit_batch")
    graph.add_edge("commit_batch", "plan_batch")
    return graph


graph = build().compile(name="ask")
