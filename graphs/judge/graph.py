"""`judge`: asks one question in n independent runs, fits τ, and hands disagreements to people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from pollex.agents.ensemble import Ensemble
from pollex.agents.votes import Votes
from pollex.graphs.context import BatchContext, BatchState, ConversationIndex, Item, context_of
from pollex.graphs.judge.state import (
    PERSON,
    JudgeRunState,
    Tally,
    fit_to_thumbs,
    persons_answer,
    persons_question,
    run_question,
)
from pollex.rubrics.answers import Question, Unanswered
from pollex.store.rows import answer_rows, label_row


class JudgeState(BatchState, total=False):
    """Ids only.

    Attributes:
        given: By conversation, the option that a person chose.
    """

    given: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class JudgeContext(BatchContext):
    """The runtime context of the nodes of `judge`.

    Attributes:
        known: By conversation, runs answered in an earlier session.
        precision: Precision that τ is fitted to; None for the rule as it is.
        truth: By labeled conversation, index of the option that its thumb stands for.
    """

    shelf: ConversationIndex
    ensemble: Ensemble
    question: Question
    work: JudgeRunState
    known: Mapping[str, Mapping[int, Votes]] = field(default_factory=dict)
    precision: float | None = None
    truth: Mapping[str, int] = field(default_factory=dict)


async def plan_batch(state: JudgeState, runtime: Runtime[JudgeContext]) -> BatchState:
    """Plan the next batch of conversations."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        await context.ensemble.prepare([context.shelf[id_] for id_ in planned["batch"]])
        span.outputs(planned["batch"])
    return planned


def fan_out(state: JudgeState) -> list[Send] | str:
    """Make one task for each conversation of the batch; then fit the rule."""
    return [Send("ask_runs", Item(id=id_)) for id_ in state["batch"]] or "fit_rule"


async def ask_runs(state: Item, runtime: Runtime[JudgeContext]) -> JudgeState:
    """Ask the ensemble's runs about one conversation."""
    context, id_ = runtime.context, state["id"]
    conversation, ensemble = context.shelf[id_], context.ensemble
    async with context.semaphore, context.tracer.span("ask_runs", kind="role", item=id_) as span:
        (votes,) = await ensemble.votes(conversation, [context.question], context.known.get(id_))
        failed = [vote for vote in votes if isinstance(vote, Unanswered)]
        span.outputs([f"{len(votes) - len(failed)} of {len(votes)} runs answered"])
        if failed:
            span.failed(f"{len(failed)} runs failed, the first: {failed[0].outcome}: {failed[0].detail}")
        asked = [run_question(context.question, number) for number in range(len(votes))]
        context.store.put(answer_rows(context.run, conversation, asked, votes, ensemble.drawn_from))
    context.work.tallies[id_] = Tally.of(votes, len(context.question.options))
    context.end(id_, "judge")
    return {}


async def keep_batch(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:
    """Commit the batch's answers before the next batch begins."""
    with runtime.context.tracer.span("keep_batch", kind="node", inputs=state["batch"]):
        await runtime.context.close(state["batch"], "judge")
    return {}


async def fit_rule(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:  # noqa: ARG001
    """Fit τ to the thumbs if a precision is wanted."""
    context, work = runtime.context, runtime.context.work
    with context.tracer.span("fit_rule", kind="node") as span:
        if context.precision is not None:
            fit_to_thumbs(work, context.shelf, context.truth, context.precision)
        span.outputs([work.rule.in_words()])
    return {}


def needs_review(state: JudgeState, runtime: Runtime[JudgeContext]) -> str:  # noqa: ARG001
    """Return whether people have to decide conversations without agreement, as the next node."""
    return "human_review" if runtime.context.work.waiting() else END


async def human_review(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:  # noqa: ARG001
    """Interrupt the graph until people answer: resumed with an option for each conversation.

    A resumed node is run again from its beginning, so nothing else is done here.
    """
    question = runtime.context.question
    given: dict[str, str] = interrupt(
        {
            "question": question.text,
            "options": [option.text for option in question.options],
            "conversations": runtime.context.work.waiting(),
        }
    )
    return {"given": given}


async def apply_review(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:
    """Store people's answers; skip those that weren't asked for or are no option."""
    context, work = runtime.context, runtime.context.work
    options = [option.text for option in context.question.options]
    waiting = set(work.waiting())
    taken = {id_: text for id_, text in state["given"].items() if id_ in waiting and text in options}
    with context.tracer.span("apply_review", kind="node", inputs=taken):
        for id_, text in taken.items():
            answer = persons_answer(context.question, options.index(text))
            about = persons_question(context.question)
            about_whom = context.shelf[id_]
            context.store.put(answer_rows(context.run, about_whom, [about], [answer], PERSON))
            context.store.put([label_row(context.run, about_whom, about.id, text, drawn="doubtful")])
        await context.store.settle()
        work.people |= taken
    return {"given": {}}


def build() -> StateGraph[JudgeState, JudgeContext, JudgeState, JudgeState]:
    """Build the graph, uncompiled; waiting for people needs a checkpointer."""
    graph: StateGraph[JudgeState, JudgeContext, Any, Any] = StateGraph(JudgeState, context_schema=JudgeContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("ask_runs", ask_runs)
    graph.add_node("keep_batch", keep_batch)
    graph.add_node("fit_rule", fit_rule)
    graph.add_node("human_review", human_review)
    graph.add_node("apply_review", apply_review)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["ask_runs", "fit_rule"])
    graph.add_edge("ask_runs", "keep_batch")
    graph.add_edge("keep_batch", "plan_batch")
    graph.add_conditional_edges("fit_rule", needs_review, ["human_review", END])
    graph.add_edge("human_review", "apply_review")
    graph.add_conditional_edges("apply_review", needs_review, ["human_review", END])
    return graph


graph = build().compile(name="judge")
