"""`remedy`: asks for replies under the old and the new prompt in four waves, and looks after each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict  # LangGraph Studio can't show the standard one before Python 3.12

from pollex.agents.assistant import Assistant, AssistantReply, NoReply, ReplyRequest, continued
from pollex.agents.reply_judge import ReplyJudge
from pollex.conversations.reply_context import ReplyContext
from pollex.errors import PollexError
from pollex.graphs.ask import detail_of
from pollex.graphs.context import Context, context_of
from pollex.measures.arrays import Floats
from pollex.measures.looks import GOING
from pollex.measures.proofs import ProofArrays
from pollex.rubrics.answers import Answer, Question, Unanswered

REPLY = "reply"


class RemedyState(TypedDict, total=False):
    """Where a proof is.

    Attributes:
        look: Looks that were taken.
        outcome: What the last of them decided; see `measures.looks`.
    """

    look: int
    outcome: int


@dataclass(frozen=True)
class ProofItem:
    """A context that is asked again, with the prompt of each arm and the messages.

    Attributes:
        systems: Old and new, with the conversation's values.
    """

    context: ReplyContext
    systems: tuple[str, str]
    messages: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RemedyContext(Context):
    """The runtime context of the nodes of `remedy`.

    Attributes:
        keys: Random names of requests, by context, arm and reply `[context][arm][reply]`.
        signs: Whether a rubric speaks for satisfaction, by question.
        checks: Values of a reply that need no judge, after the questions; each maps a reply and its prompt to 0 … 1.
        kept: Replies of an earlier start of the run, by key.
        texts: Replies or why there is none `[context][arm][reply]`, as they come.
        answers: Answers of the judge, as they come, by context, arm and reply.
    """

    assistant: Assistant
    judge: ReplyJudge
    items: Sequence[ProofItem]
    questions: Sequence[Question]
    checks: Sequence[Any]
    arrays: ProofArrays
    bounds: Sequence[float]
    replies: int
    seed: int
    keys: Mapping[tuple[int, int, int], str]
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: dict[tuple[int, int, int], AssistantReply | NoReply] = field(default_factory=dict)
    answers: dict[tuple[int, int, int], Sequence[Answer | Unanswered]] = field(default_factory=dict)
    missing: dict[int, Counter[str]] = field(default_factory=lambda: {0: Counter(), 1: Counter()})


async def prove(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Ask for and judge the replies of a wave, both arms in turn."""
    context, look = context_of(runtime), state.get("look", 0)
    mine = [n for n in range(len(context.items)) if context.arrays.wave[n] == look]
    with context.tracer.span("prove", kind="node", inputs=[context.items[n].context.id for n in mine]):
        places = [(n, arm, k) for n in mine for k in range(context.replies) for arm in (0, 1)]
        await asyncio.gather(*(reply_and_judge(context, place) for place in places))
        await context.store.settle()
    return {}


async def reply_and_judge(context: RemedyContext, place: tuple[int, int, int]) -> None:
    """Get one reply, keep it, and have it judged; what fails is counted and never a score."""
    n, arm, k = place
    item, key = context.items[n], context.keys[place]
    async with context.semaphore, context.tracer.span(REPLY, kind="role", item=item.context.id) as span:
        found = await reply_to(context, item, arm, k, key)
        context.texts[place] = found
        if isinstance(found, NoReply):
            context.missing[arm][found.kind] += 1
            span.failed(f"{found.kind}: {found.detail}")
            context.arrays.values[n, arm, k, len(context.questions) :] = [0.0] + [np.nan] * (len(context.checks) - 1)
            context.progress.advance("prove")
            return
        answers = await judged(context, item, found.text)
        context.answers[place] = answers
        context.arrays.length[n, arm, k] = len(found.text)
        context.arrays.values[n, arm, k] = values_of(context, answers, found.text, item.systems[arm])
        if failed := [one for one in answers if isinstance(one, Unanswered)]:
            context.missing[arm][f"judging {failed[0].outcome}"] += 1
    context.progress.advance("prove")


async def reply_to(context: RemedyContext, item: ProofItem, arm: int, k: int, key: str) -> AssistantReply | NoReply:
    """Return a reply that was kept, or ask for one and keep it."""
    if (kept := context.kept.get(key)) is not None:
        return AssistantReply(kept["text"]) if "text" in kept else NoReply(kept["kind"], kept["detail"])
    request = ReplyRequest(key=key, system=item.systems[arm], messages=item.messages, seed=context.seed + k)
    found = await continued(context.assistant, request, item.context)
    told = {"text": found.text} if isinstance(found, AssistantReply) else {"kind": found.kind, "detail": found.detail}
    if told.get("kind") not in ("pending", "error"):  # those may be others the next time
        await context.store.write_step(context.run, f"{REPLY} {key}", told)
    return found


async def judged(context: RemedyContext, item: ProofItem, text: str) -> list[Answer | Unanswered]:
    """Judge a reply in its conversation; the judge sees neither prompt nor arm."""
    conversation = item.context.with_reply(text)
    try:
        return await context.judge.judge_reply(conversation, context.questions)
    except PollexError:
        raise
    except Exception as error:
        detail = detail_of(error, context.secrets)
        return [Unanswered(question_id=q.id, outcome="error", detail=detail) for q in context.questions]


def values_of(context: RemedyContext, answers: Sequence[Answer | Unanswered], text: str, system: str) -> Floats:
    """Return what a reply is worth by each question and check `[question]`, from 0 to 1; better is higher."""
    judged_values = [value_of(q, answer) for q, answer in zip(context.questions, answers, strict=True)]
    return np.array([*judged_values, *(float(check(text, system)) for check in context.checks)])


def value_of(question: Question, answer: Answer | Unanswered) -> float:
    """Return an answer's worth; NaN where there is none. What never came up can't fail, and isn't done either."""
    if isinstance(answer, Unanswered):
        return float("nan")
    good = question.rubric is not None and question.rubric.polarity == "sat"
    if answer.never_came_up:
        return 0.5 if good else 1.0
    held = answer.value(question.options) / 10
    return held if good else 1 - held


async def look(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Look at what came in, and decide whether to go on."""
    context, taken = runtime.context, state.get("look", 0)
    with context.tracer.span("look", kind="node") as span:
        outcome = context.arrays.outcome_at(taken, context.bounds)
        span.outputs([f"look {taken + 1}: {outcome}"])
    return {"look": taken + 1, "outcome": outcome}


def goes_on(state: RemedyState) -> str:
    """Choose what comes after a look."""
    return "prove" if state["outcome"] == GOING else END


def build() -> StateGraph[RemedyState, RemedyContext, RemedyState, RemedyState]:
    """Build the graph, uncompiled."""
    graph = StateGraph(RemedyState, context_schema=RemedyContext)
    graph.add_node("prove", prove)
    graph.add_node("look", look)
    graph.add_edge(START, "prove")
    graph.add_edge("prove", "look")
    graph.add_conditional_edges("look", goes_on, ["prove", END])
    return graph


graph = build().compile(name="remedy")
