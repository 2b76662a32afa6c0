"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.roles import Judge
from pollex.graphs.ask import ask
from pollex.graphs.context import BatchContext, BatchState, ConversationIndex, Item, context_of
from pollex.graphs.score.run import score_row
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.netsat import NetSat
from pollex.rubrics.rubric import Polarity


@dataclass(frozen=True, kw_only=True)
class ScoreContext(BatchContext):
    """The runtime context of the nodes of `score`.

    Attributes:
        answers: Answers of the batch, by conversation; emptied with each batch.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    netsat: NetSat
    answers: dict[str, list[Answer | Unanswered]] = field(default_factory=dict)


async def plan_batch(state: BatchState, runtime: Runtime[ScoreContext]) -> BatchState:
    """Plan the next batch of conversations."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        await context.judge.prepare([context.shelf[id_] for id_ in planned["batch"]])
        span.outputs(planned["batch"])
    return planned


def fan_out(state: BatchState) -> list[Send] | str:
    """Make two tasks for each conversation of the batch, one for each polarity.

    When no conversation is left, the graph ends.
    """
    sides = ("judge_sat", "judge_dsat")
    return [Send(side, Item(id=id_)) for id_ in state["batch"] for side in sides] or END


async def judge_sat(state: Item, runtime: Runtime[ScoreContext]) -> BatchState:
    """Judge one conversation on the SAT rubrics."""
    await _judge("sat", state["id"], runtime.context)
    return {}


async def judge_dsat(state: Item, runtime: Runtime[ScoreContext]) -> BatchState:
    """Judge one conversation on the DSAT rubrics."""
    await _judge("dsat", state["id"], runtime.context)
    return {}


async def _judge(polarity: Polarity, conversation_id: str, context: ScoreContext) -> None:
    questions = [q for q in context.questions if q.rubric and q.rubric.polarity == polarity]
    if not questions:
        return
    conversation = context.shelf[conversation_id]
    answers = await ask(context, f"judge_{polarity}", context.judge, conversation, questions)
    context.answers.setdefault(conversation_id, []).extend(answers)


async def compute_netsat(state: BatchState, runtime: Runtime[ScoreContext]) -> BatchState:
    """Compute the batch's scores."""
    context = runtime.context
    with context.tracer.span("compute_netsat", kind="node", inputs=state["batch"]):
        for score in context.netsat.score_all({id_: context.answers.pop(id_) for id_ in state["batch"]}):
            context.store.put([score_row(context.run, score)])
        await context.close(state["batch"], "score")
    return {}


def build() -> StateGraph[BatchState, ScoreContext, BatchState, BatchState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(BatchState, context_schema=ScoreContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("judge_sat", judge_sat)
    graph.add_node("judge_dsat", judge_dsat)
    graph.add_node("compute_netsat", compute_netsat)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["judge_sat", "judge_dsat", END])
    graph.add_edge("judge_sat", "compute_netsat")
    graph.add_edge("judge_dsat", "compute_netsat")
    graph.add_edge("compute_netsat", "plan_batch")
    return graph


graph = build().compile(name="score")
