"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.roles import Judge
from pollex.graphs.ask import ask
from pollex.graphs.context import ConversationIndex, Item, WaveContext, WaveState, context_of
from pollex.graphs.score.run import score_row
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.netsat import NetSat
from pollex.rubrics.rubric import Polarity


@dataclass(frozen=True, kw_only=True)
class ScoreContext(WaveContext):
    """The runtime context of the nodes of `score`.

    Attributes:
        answers: Answers of the wave, by conversation; emptied with each wave.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    netsat: NetSat
    answers: dict[str, list[Answer | Unanswered]] = field(default_factory=dict)


async def plan_wave(state: WaveState, runtime: Runtime[ScoreContext]) -> WaveState:
    """Plan the next wave of conversations."""
    context = context_of(runtime)
    with context.tracer.span("plan_wave", kind="node") as span:
        planned = context.next_wave(state)
        await context.judge.prepare([context.shelf[id_] for id_ in planned["wave"]])
        span.outputs(planned["wave"])
    return planned


def fan_out(state: WaveState) -> list[Send] | str:
    """Make two tasks for each conversation of the wave, one for each polarity.

    When no conversation is left, the graph ends.
    """
    sides = ("judge_sat", "judge_dsat")
    return [Send(side, Item(id=id_)) for id_ in state["wave"] for side in sides] or END


async def judge_sat(state: Item, runtime: Runtime[ScoreContext]) -> WaveState:
    """Judge one conversation on the SAT rubrics."""
    await _judge("sat", state["id"], runtime.context)
    return {}


async def judge_dsat(state: Item, runtime: Runtime[ScoreContext]) -> WaveState:
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


async def add_up(state: WaveState, runtime: Runtime[ScoreContext]) -> WaveState:
    """Compute the wave's scores."""
    context = runtime.context
    with context.tracer.span("add_up", kind="node", inputs=state["wave"]):
        for score in context.netsat.score_all({id_: context.answers.pop(id_) for id_ in state["wave"]}):
            context.store.put([score_row(context.run, score)])
        await context.close(state["wave"], "score")
    return {}


def build() -> StateGraph[WaveState, ScoreContext, WaveState, WaveState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(WaveState, context_schema=ScoreContext)
    graph.add_node("plan_wave", plan_wave)
    graph.add_node("judge_sat", judge_sat)
    graph.add_node("judge_dsat", judge_dsat)
    graph.add_node("add_up", add_up)

    graph.add_edge(START, "plan_wave")
    graph.add_conditional_edges("plan_wave", fan_out, ["judge_sat", "judge_dsat", END])
    graph.add_edge("judge_sat", "add_up")
    graph.add_edge("judge_dsat", "add_up")
    graph.add_edge("add_up", "plan_wave")
    return graph


graph = build().compile(name="score")
