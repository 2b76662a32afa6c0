"""`grade`: finds unknown task types, then grades answers with and without references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.agents.llm.reference_judge import plain_questions, questions_for, type_question
from pollex.agents.roles import Judge
from pollex.conversations.references import Case
from pollex.graphs.ask import ask
from pollex.graphs.context import BatchContext, BatchState, Item, context_of
from pollex.prompts.grading.profile import ReferencingProfile
from pollex.rubrics.answers import Answer, Question


@dataclass(frozen=True, kw_only=True)
class GradeContext(BatchContext):
    """The runtime context of the nodes of `grade`.

    Attributes:
        cases: By id.
        plain: The judge without a reference; None leaves it out.
        types: By id, the type that a model chose; None if it was unsure, or didn't answer.
    """

    profile: ReferencingProfile
    cases: Mapping[str, Case]
    classifier: Judge
    judge: Judge
    plain: Judge | None
    types: dict[str, str | None] = field(default_factory=dict)

    def has_type(self, case: Case) -> bool:
        """Return whether the type of a case is known, or not needed to grade it."""
        if case.answer is None or not case.reference or case.id in self.types:
            return True
        return self.profile.type_of(case.category, case.subcategory) is not None

    def questions(self, case: Case) -> list[Question]:
        """List the questions about a case's answer."""
        return questions_for(self.profile, case, self.types.get(case.id))


async def plan_batch(state: BatchState, runtime: Runtime[GradeContext]) -> BatchState:
    """Plan the next batch of cases."""
    context = context_of(runtime)
    with context.tracer.span("plan_batch", kind="node") as span:
        planned = context.next_batch(state)
        span.outputs(planned["batch"])
    return planned


def fan_out_unknown(state: BatchState, runtime: Runtime[GradeContext]) -> list[Send] | str:
    """Make a task for each case without a type from its category.

    When no case is left, the graph ends.
    """
    context = runtime.context
    unknown = [id_ for id_ in state["batch"] if not context.has_type(context.cases[id_])]
    tasks = [Send("classify", Item(id=id_)) for id_ in unknown]
    return tasks or ("choose_dimensions" if state["batch"] else END)


async def classify(state: Item, runtime: Runtime[GradeContext]) -> BatchState:
    """Ask the model for the type of one case's task; it may be unsure."""
    context = runtime.context
    case, question = context.cases[state["id"]], type_question(context.profile)
    (answer,) = await ask(context, "classify", context.classifier, case.conversation, [question])
    named = question.options[answer.chosen].text if isinstance(answer, Answer) else None
    context.types[case.id] = named if named in context.profile.types else None
    return {}


async def choose_dimensions(state: BatchState, runtime: Runtime[GradeContext]) -> BatchState:
    """Record that the types of the batch are known, and so the dimensions to grade."""
    with runtime.context.tracer.span("choose_dimensions", kind="node", inputs=state["batch"]):
        return {}


def fan_out(state: BatchState, runtime: Runtime[GradeContext]) -> list[Send]:
    """Make one task for each case of the batch and each judge."""
    judges = ["grade_by_rules", *(["grade_plainly"] if runtime.context.plain else [])]
    return [Send(judge, Item(id=id_)) for id_ in state["batch"] for judge in judges]


async def grade_by_rules(state: Item, runtime: Runtime[GradeContext]) -> BatchState:
    """Grade one answer against its reference, on each dimension and overall."""
    context = runtime.context
    case = context.cases[state["id"]]
    await ask(context, "grade_by_rules", context.judge, case.conversation, context.questions(case))
    context.end(case.id, "grade", tasks=2 if context.plain else 1)
    return {}


async def grade_plainly(state: Item, runtime: Runtime[GradeContext]) -> BatchState:
    """Grade one answer without reference and rules."""
    context = runtime.context
    assert context.plain is not None, "it is sent to only where there is one"
    case = context.cases[state["id"]]
    await ask(context, "grade_plainly", context.plain, case.conversation, plain_questions(context.profile))
    context.end(case.id, "grade", tasks=2)
    return {}


async def commit_batch(state: BatchState, runtime: Runtime[GradeContext]) -> BatchState:
    """Commit the batch's grades."""
    with runtime.context.tracer.span("commit_batch", kind="node", inputs=state["batch"]):
        await runtime.context.close(state["batch"], "grade")
    return {}


def build() -> StateGraph[BatchState, GradeContext, BatchState, BatchState]:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(BatchState, context_schema=GradeContext)
    graph.add_node("plan_batch", plan_batch)
    graph.add_node("classify", classify)
    graph.add_node("choose_dimensions", choose_dimensions)
    graph.add_node("grade_by_rules", grade_by_rules)
    graph.add_node("grade_plainly", grade_plainly)
    graph.add_node("commit_batch", commit_batch)

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges("plan_batch", fan_out_unknown, ["classify", "choose_dimensions", END])
    graph.add_edge("classify", "choose_dimensions")
    graph.add_conditional_edges("choose_dimensions", fan_out, ["grade_by_rules", "grade_plainly"])
    graph.add_edge("grade_by_rules", "commit_batch")
    graph.add_edge("grade_plainly", "commit_batch")
    graph.add_edge("commit_batch", "plan_batch")
    return graph


graph = build().compile(name="grade")
