"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability.

Where no model is asked, a batch is scored in one piece: two tasks a conversation would cost more than its answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.ask import ask
from pollex.graphs.context import BatchContext, BatchState, ConversationIndex, Item, context_of
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.netsat import NetSat, Score
from pollex.rubrics.rubric import Polarity
from pollex.store.rows import conversation_rows, score_row

Whole = Callable[[Sequence[Conversation]], Awaitable[Sequence[Score]]]
"""Scores a batch of conversations, in their order."""


class ScoreState(BatchState, total=False):
    """Ids only.

    Attributes:
        whole: Whether batches are scored in one piece.
    """

    whole: bool


@dataclass(frozen=True, kw_only=True)
class ScoreContext(BatchContext):
    """The runtime context of the nodes of `score`.

    Attributes:
        answers: Answers of the batch, by conversation; emptied with each batch.
        whole: Scores conversations in one piece, in their order; None where each is asked about by itself.
        told: Told the scores of each batch that was scored in one piece.
        done: Conversations that an earlier attempt scored.
        known: Conversations that it stored.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    netsat: NetSat
    answers: dict[str, list[Answer | Unanswered]] = field(default_factory=dict)
    whole: Whole | None = None
    told: Callable[[Sequence[Score]], None] = lambda _scores: None
    done: Collection[str] = ()
    known: Collection[str] = ()


async def plan_batch(state: ScoreState, runtime: Runtime[ScoreContext]) -> ScoreState:
    """Plan the next batch of conversations."""
    context = context_of(runtime)
    planned = context.next_batch(state)
    if context.whole is not None:
        return {**planned, "whole": True}
    with context.tracer.span("plan_batch", kind="node") as span:
        await context.judge.prepare([context.shelf[id_] for id_ in planned["batch"]])
        span.outputs(planned["batch"])
    return {**planned, "whole": False}


def fan_out(state: ScoreState) -> list[Send] | str:
    """Make two tasks for each conversation of the batch, one for each polarity, or one task for all of them.

    When no conversation is left, the graph ends.
    """
    if state["whole"] and state["batch"]:
        return "score_batch"
    sides = ("judge_sat", "judge_dsat")
    return [Send(side, Item(id=id_)) for id_ in state["batch"] for side in sides] or END


async def judge_sat(state: Item, runtime: Runtime[ScoreContext]) -> ScoreState:
    """Judge one conversation on the SAT rubrics."""
    await _judge("sat", state["id"], runtime.context)
    return {}


async def judge_dsat(state: Item, runtime: Runtime[ScoreContext]) -> ScoreState:
    """Judge one conversation on the DSAT rubrics."""
    await _judge("dsat", state["id"], runtime.context)
    return {}


async def _judge(polarity: Polarity, conversation_id: str, context: ScoreContext) -> None:
    sides = {q.rubric.polarity for q in context.questions if q.rubric}
    if polarity not in sides:
        return
    questions = [q for q in context.questions if q.rubric and q.rubric.polarity == polarity]
    conversation = context.shelf[conversation_id]
    answers = await ask(context, f"judge_{polarity}", context.judge, conversation, questions)
    context.answers.setdefault(conversation_id, []).extend(answers)
    context.end(conversation_id, "score", tasks=len(sides))


async def score_batch(state: ScoreState, runtime: Runtime[ScoreContext]) -> ScoreState:
    """Score the batch in one piece."""
    context = runtime.context
    assert context.whole is not None, "only called where there is one"
    batch = [context.shelf[id_] for id_ in state["batch"]]
    with context.tracer.span("score_batch", kind="node") as span:
        scores = await context.whole(batch)  # also what a killed run has: it is quicker done than read
        span.outputs([f"{len(scores)} scored"])
    new = [(one, score) for one, score in zip(batch, scores, strict=True) if one.id not in context.done]
    context.store.put(conversation_rows(context.run, [one for one, _ in new if one.id not in context.known]))
    fingerprint = context.judge.fingerprint
    for one, score in new:  # answers are in the order of the rubrics, as the questions are
        context.store.put(context.lines.of(one, context.questions, score.answers, fingerprint))
        context.store.put([score_row(context.run, score)])
    await context.close(state["batch"], "score")
    context.told(scores)
    return {}


async def compute_netsat(state: ScoreState, runtime: Runtime[ScoreContext]) -> ScoreState:
    """Compute the batch's scores."""
    context = runtime.context
    with context.tracer.span("compute_netsat", kind="node", inputs=state["batch"]):
        for score in context.netsat.score_all({id_: context.answers.pop(id_) for id_ in state["batch"]}):
            context.store.put([score_row(context.run, score)])
        await context.close(state["batch"], "score")
    return {}


def build() -> StateGraph[ScoreState, ScoreContext, ScoreState, ScoreState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(ScoreState, context_schema=ScoreContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("judge_sat", judge_sat)
    graph.add_node("judge_dsat", judge_dsat)
    graph.add_node("compute_netsat", compute_netsat)
    graph.add_node("score_batch", score_batch)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["judge_sat", "judge_dsat", "score_batch", END])
    graph.add_edge("judge_sat", "compute_netsat")
    graph.add_edge("judge_dsat", "compute_netsat")
    graph.add_edge("compute_netsat", "plan_batch")
    graph.add_edge("score_batch", "plan_batch")
    return graph


graph = build().compile(name="score")
