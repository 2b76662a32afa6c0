"""`answer`: asks the system under test questions, each at the temperature of its category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.llm.respondent import Respondent
from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.references import Case
from pollex.errors import PollexError
from pollex.graphs.ask import detail_of
from pollex.graphs.context import BatchContext, BatchState, Item, context_of
from pollex.prompts.grading.profile import ReferencingProfile
from pollex.rubrics.answers import Unanswered
from pollex.store.rows import conversation_rows


@dataclass(frozen=True, kw_only=True)
class AnswerContext(BatchContext):
    """The runtime context of the nodes of `answer`.

    Attributes:
        cases: By id.
    """

    profile: ReferencingProfile
    cases: Mapping[str, Case]
    respondent: Respondent


async def plan_batch(state: BatchState, runtime: Runtime[AnswerContext]) -> BatchState:
    """Plan the next batch of questions."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        span.outputs(planned["batch"])
    return planned


def fan_out(state: BatchState) -> list[Send] | str:
    """Make one task for each question of the batch; end when none is left."""
    return [Send("respond", Item(id=id_)) for id_ in state["batch"]] or END


async def respond(state: Item, runtime: Runtime[AnswerContext]) -> BatchState:
    """Ask one question and store the system's answer, or why there is none."""
    context = runtime.context
    case = context.cases[state["id"]]
    temperature = context.profile.temperature_of(case.category, case.subcategory)
    async with context.semaphore, context.tracer.span("respond", kind="role", item=case.id) as span:
        found = await _response(context, case, temperature)
        if isinstance(found, Unanswered):
            span.failed(f"{found.outcome}: {found.detail}")
        # Inside the span, which is written after it: whoever finds the span of a killed run finds the answer, too.
        kept = responded(case, found, context.respondent.name, temperature)
        context.store.put(conversation_rows(context.run, [kept]))
    context.end(case.id, "answer")
    return {}


async def _response(context: AnswerContext, case: Case, temperature: float) -> str | Unanswered:
    """Ask for the answer; an exception is a failure of that question alone."""
    try:
        return await context.respondent.respond(case.id, case.question, temperature)
    except PollexError:
        raise
    except Exception as error:
        detail = detail_of(error, context.secrets)
        return Unanswered(question_id=case.id, outcome="error", detail=detail, judge=context.respondent.name)


async def commit_batch(state: BatchState, runtime: Runtime[AnswerContext]) -> BatchState:
    """Commit the batch's answers."""
    with runtime.context.tracer.span("commit_batch", kind="node", inputs=state["batch"]):
        await runtime.context.close(state["batch"], "answer")
    return {}


def responded(case: Case, found: str | Unanswered, model: str, temperature: float) -> Conversation:
    """Return a question with its answer as stored; without one, the question and the reason."""
    turns, about = [Turn(role="user", content=case.question)], {"outcome": "answered", "detail": ""}
    if isinstance(found, Unanswered):
        about = {"outcome": found.outcome, "detail": found.detail}
    else:
        turns.append(Turn(role="assistant", content=found))
    return Conversation(id=case.id, turns=tuple(turns), metadata={**about, "model": model, "temperature": temperature})


def build() -> StateGraph[BatchState, AnswerContext, BatchState, BatchState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(BatchState, context_schema=AnswerContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("respond", respond)
    graph.add_node("commit_batch", commit_batch)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out, ["respond", END])
    graph.add_edge("respond", "commit_batch")
    graph.add_edge("commit_batch", "plan_batch")
    return graph


graph = build().compile(name="answer")
