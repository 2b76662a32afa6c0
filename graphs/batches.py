"""One builder for graphs that work in batches: plan a batch, work on it, commit it, until nothing is left.

A batch is asked inside one node: a task for each item would cost a millisecond, and five with
checkpoints. What is pending is read from the store when a session begins, so a batch that a kill
cut short asks only for its rest: nodes leave it alone where another process planned it, and what is
left of it is planned again.
"""

import asyncio
import operator
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, TypeAlias, TypeVar

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

# LangGraph Studio can't show the standard one before Python 3.12
from typing_extensions import TypedDict

from pollex.agents.roles import (
    Extraction,
    Extractor,
    Judge,
    answer_each_question,
    describe_exception,
    list_fingerprints_for_questions,
)
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.graphs.context import Context, ContextType, Resources, get_resources_of_thread
from pollex.graphs.findings import Findings
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.store.rows import make_fact_row

S = TypeVar("S")


class BatchState(TypedDict, total=False):
    """How far a run is.

    Attributes:
        run: Where all else is kept.
        parent: The run that this one was forked from.
        batch: Ids of the items that are being worked on.
        asked: By node, how many items of the batch it worked on.
        done: Items that are settled, of `total`.
        questions: What is asked, by the id that answers go by.
        by_node: By node, what it came to for the first items of the batch, as it came; or a line
            that says where that stands.
        outcomes: How many came to what.
        first: The first results of the batch: id, what was found, and why in a line.
        worst: The worst results so far.
        so_far: Means of all results of this session, each with how many it is of.
        status: `partial` if anything failed; set at the end.
    """

    run: str
    parent: str
    batch: list[str]
    asked: Annotated[dict[str, int], operator.or_]
    done: int
    total: int
    outcomes: dict[str, int]
    questions: dict[str, str]
    by_node: Annotated[dict[str, object], operator.or_]
    first: list[dict[str, object]]
    worst: list[dict[str, object]]
    so_far: dict[str, dict[str, float]]
    status: str


@dataclass(frozen=True, kw_only=True)
class BatchWork(Resources):
    """The resources of graphs that work in batches.

    Attributes:
        stage: Name of the work, for its progress.
        outcomes: How many came to what; those that an earlier session settled are counted already.
        fine: Outcomes that are no failures.
        planned: The batch that was planned in this process: of another one, what nodes had in
            memory is gone.
        findings: What the state tells of results.
    """

    stage: str
    outcomes: Counter[str] = field(default_factory=Counter)
    fine: frozenset[str] = frozenset()
    planned: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)

    async def prepare(self, batch: Sequence[str]) -> None:
        """Prepare for a batch."""

    def legend(self) -> dict[str, str]:
        """Return what is asked, by the id that answers go by in the state; nothing where ids say it."""
        return {}

    @property
    def idle(self) -> frozenset[str]:
        """Names of nodes that have nothing to do in this run."""
        return frozenset()

    def begin(self) -> None:
        """Show how far an earlier session came."""
        self.progress.start(
            self.stage,
            self.total,
            self.total - len(self.pending),
        )

    def end(self, item: str, *outcomes: str) -> None:
        """Settle an item, with what it came to: a batch of a slow model takes hours."""
        if item in self.pending:
            del self.pending[item]
            self.outcomes.update(outcomes)
            self.progress.advance(self.stage)

    def result(self, state: Mapping[str, object]) -> dict[str, Any]:  # noqa: ARG002
        """Return what the run came to, for `pollex runs`."""
        return {"outcomes": dict(self.outcomes)}


async def await_all_or_cancel_others(work: Iterable[Awaitable[None]]) -> None:
    """Await all; the first exception cancels the others."""
    tasks = [asyncio.ensure_future(step) for step in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


StateType = TypeVar("StateType", bound=BatchState)
BatchGraph: TypeAlias = StateGraph[StateType, ContextType, StateType, StateType]
BatchNode = Callable[[BatchState, Runtime[Context]], Awaitable[BatchState]]
W = TypeVar("W", bound=BatchWork)


def make_graph_node_of_batch_function(
    kind: type[W],
) -> Callable[[Callable[[W, Sequence[str]], Awaitable[None]]], BatchNode]:
    """Make a node of a function that works on those items of a batch that are not settled."""

    def made(work: Callable[[W, Sequence[str]], Awaitable[None]]) -> BatchNode:
        async def node(state: BatchState, runtime: Runtime[Context]) -> BatchState:
            live = await get_resources_of_thread(runtime, kind)
            # a state of before names a batch that this process did not plan: nothing is done
            pending = live.pending if live.planned == state["batch"] else ()
            left = []
            for id_ in state["batch"]:
                if id_ in pending:
                    left.append(id_)

            await work(live, left)
            if work.__name__ in live.idle:
                count = 0
            else:
                count = len(left)

            findings = live.findings.update(work.__name__)
            # the state says no more than what is durable
            if findings:
                await live.store.settle()

            return {"asked": {work.__name__: count}, **findings}  # type: ignore[typeddict-item]  # its keys are the state's

        node.__name__ = work.__name__
        node.__doc__ = work.__doc__
        return node

    return made


def make_graph_node_of_item_function(
    kind: type[W],
) -> Callable[[Callable[[W, str], Awaitable[None]]], BatchNode]:
    """Make a node of a function that works on one item: it works on all of a batch at once."""

    def made(work: Callable[[W, str], Awaitable[None]]) -> BatchNode:
        async def every(live: W, ids: Sequence[str]) -> None:
            await await_all_or_cancel_others(work(live, id_) for id_ in ids)

        every.__name__ = work.__name__
        every.__doc__ = work.__doc__
        return make_graph_node_of_batch_function(kind)(every)

    return made


async def plan_batch(state: BatchState, runtime: Runtime[Context]) -> BatchState:  # noqa: ARG001
    """Plan the next batch of what is left."""
    live = await get_resources_of_thread(runtime, BatchWork)
    with live.tracer.span("plan_batch", kind="node") as span:
        # what nodes need of the batch is in memory before the state names it
        batch = list(live.pending)[: live.batch]
        await live.prepare(batch)
        live.planned[:] = batch
        live.findings.begin(batch)
        span.outputs(batch)

    planned: BatchState = {
        "run": live.run,
        "batch": batch,
        "total": live.total,
    }
    if questions := live.legend():
        planned["questions"] = questions

    return planned


async def commit_batch(state: BatchState, runtime: Runtime[Context]) -> BatchState:
    """Commit the batch's results, which bounds the cost of a kill."""
    live = await get_resources_of_thread(runtime, BatchWork)
    with live.tracer.span("commit_batch", kind="node", inputs=state["batch"]):
        await live.store.settle()

    committed: BatchState = {"done": live.total - len(live.pending)}
    if live.outcomes:  # some count theirs at the end
        committed["outcomes"] = dict(live.outcomes)

    return committed


async def finish(state: BatchState, runtime: Runtime[ContextType]) -> BatchState:
    """Record what the run came to."""
    live = await get_resources_of_thread(runtime, BatchWork)
    # anything else than a fine outcome makes the run partial
    result = live.result(state)
    partly = bool(result["outcomes"].keys() - live.fine)
    status = await live.finish(result, partly=partly)
    return {
        "status": status,
        "done": live.total - len(live.pending),
        "outcomes": result["outcomes"],
    }


def add_batch_nodes_to_graph(
    graph: BatchGraph[StateType, ContextType],
    *steps: Sequence[BatchNode],
    last: Callable[..., Awaitable[object]] = finish,
) -> BatchGraph[StateType, ContextType]:
    """Add the nodes of a run in batches; its steps come one after another, what is in one step side by side.

    Args:
        last: The node that comes after all batches.
    """
    work_nodes: list[BatchNode] = []
    for step in steps:
        work_nodes.extend(step)
    for node in [plan_batch, *work_nodes, commit_batch, last]:
        graph.add_node(node.__name__, node)

    # each step leads to the next, the commit back to the plan
    rows = [*([node.__name__ for node in step] for step in steps), ["commit_batch"], ["plan_batch"]]

    def next_step(state: BatchState) -> list[str]:
        return rows[0] if state["batch"] else [last.__name__]

    graph.add_edge(START, "plan_batch")
    graph.add_conditional_edges(
        "plan_batch",
        next_step,
        [*rows[0], last.__name__],
    )
    for before, after in pairwise(rows):
        for name in after:
            graph.add_edge(before if len(before) > 1 else before[0], name)

    graph.add_edge("finish", END)
    return graph


async def ask_judge_and_store_answers(
    context: Resources,
    name: str,
    judge: Judge,
    conversation: Conversation,
    questions: Sequence[Question],
) -> list[Answer | Unanswered]:
    """Ask the judge, store the answers, and record a span called `name`."""
    # a slot of the judge, and a span of who was asked what
    references = [question.id for question in questions]
    async with (
        context.semaphore,
        context.tracer.span(name, kind="role", item=conversation.id, inputs=references) as span,
    ):
        answers = await answer_each_question(
            judge,
            conversation,
            questions,
            context.secrets,
        )
        failed = []
        for answer in answers:
            if isinstance(answer, Unanswered):
                failed.append(answer)

        span.outputs([f"{len(answers) - len(failed)} answered"])
        if failed:
            span.failed(
                f"{len(failed)} unanswered, the first: {failed[0].outcome}: {failed[0].detail}"
            )

        # Inside the span, which is written after it: whoever finds the span of a killed run finds
        # the answers, too.
        fingerprints = list_fingerprints_for_questions(judge, questions)
        context.store.put(
            context.cells.of(
                conversation,
                questions,
                answers,
                fingerprints,
            )
        )

    return answers


async def extract_and_store_reasons(
    context: Resources,
    extractor: Extractor,
    conversation: Conversation,
) -> Extraction | Unanswered:
    """Extract from one conversation, store the result, and record a span."""
    async with (
        context.semaphore,
        context.tracer.span("extract", kind="role", item=conversation.id) as span,
    ):
        try:
            extraction = await extractor.extract(conversation)
        except PollexError:
            raise
        except Exception as error:
            extraction = Unanswered(
                question_id="",
                outcome="error",
                detail=describe_exception(error, context.secrets),
                judge=extractor.name,
            )

        if isinstance(extraction, Extraction):
            span.outputs(reason.id for reason in extraction.reasons)
        else:
            span.failed(f"{extraction.outcome}: {extraction.detail}")

        context.store.put([make_fact_row(context.run, "extraction", conversation.id, extraction)])

    return extraction
