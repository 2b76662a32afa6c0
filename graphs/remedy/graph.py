"""`remedy`: asks for replies under the old and the new prompt in four waves, and looks after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from pollex.agents.assistant import Assistant, AssistantReply, NoReply, ReplyRequest, continued
from pollex.agents.reply_judge import ReplyJudge
from pollex.conversations.reply_context import ReplyContext
from pollex.errors import PollexError
from pollex.graphs.ask import detail_of
from pollex.graphs.batches import BatchState, BatchWork, at_once, finish
from pollex.graphs.context import Context, resources
from pollex.measures.arrays import Floats
from pollex.measures.looks import BETTER, GOING, NOTHING, WORSE
from pollex.measures.proofs import ProofArrays
from pollex.rubrics.answers import Answer, Question, Unanswered

REPLY, REGISTERED = "reply", "registered"
OUTCOMES = {GOING: "goes on", BETTER: "above zero", WORSE: "below zero", NOTHING: "no difference"}
Place = tuple[int, int, int]
"""A context, an arm and a reply."""


class RemedyState(BatchState, total=False):
    """Where a proof is.

    Attributes:
        look: Looks that were taken.
        outcome: What the last of them decided; see `measures.looks`.
    """

    look: int
    outcome: int


@dataclass(frozen=True, kw_only=True)
class RemedyContext(Context):
    """What the user chose for `remedy`."""

    logs: str | list[str] = ""
    rubrics: str | list[str] = ""
    prompt: str = ""
    target: str = ""
    edit: str = ""


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
class RemedyWork(BatchWork):
    """The resources of `remedy`.

    Attributes:
        checks: Values of a reply that need no judge, after the questions; each maps a reply and its prompt to 0 or 1.
        frozen: All that may not change once the first reply is asked for.
        keys: Random names of requests, by context, arm and reply.
        kept: Replies of an earlier session of the run, by key and conversation.
        texts: Replies or why there is none, by context, arm and reply, as they come.
        answers: Answers of the judge, likewise.
        missing: Replies and judgings that are missing, by arm and kind.
    """

    assistant: Assistant
    judge: ReplyJudge
    items: Sequence[ProofItem]
    questions: Sequence[Question]
    checks: Sequence[Callable[[str, str], bool]]
    arrays: ProofArrays
    bounds: Sequence[float]
    replies: int
    seed: int
    frozen: Mapping[str, Any]
    keys: Mapping[Place, str]
    kept: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    texts: dict[Place, AssistantReply | NoReply] = field(default_factory=dict)
    answers: dict[Place, Sequence[Answer | Unanswered]] = field(default_factory=dict)
    missing: dict[int, Counter[str]] = field(default_factory=lambda: {0: Counter(), 1: Counter()})


async def freeze(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Write down what is asked, in which order, and how it is decided, before the first reply is asked for."""
    live = await resources(runtime, RemedyWork)
    await live.store.write_step(live.run, REGISTERED, dict(live.frozen))
    return {"run": live.run, "look": 0, "outcome": GOING, "total": live.total}


async def prove(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Ask for and judge the replies of a wave, both arms in turn."""
    live = await resources(runtime, RemedyWork)
    mine = [n for n in range(len(live.items)) if live.arrays.wave[n] == state["look"]]
    ids = [live.items[n].context.conversation.id for n in mine]
    with live.tracer.span("prove", kind="node", inputs=ids):
        await at_once(ask_again(live, n) for n in mine)
        await live.store.settle()
    return {"batch": ids, "asked": {"prove": len(mine)}}


async def ask_again(live: RemedyWork, n: int) -> None:
    """Get the replies to one context, and have them judged."""
    places = [(n, arm, k) for k in range(live.replies) for arm in (0, 1)]
    await at_once(reply_and_judge(live, place) for place in places)
    live.end(live.items[n].context.id, "asked")


async def reply_and_judge(live: RemedyWork, place: Place) -> None:
    """Get one reply, keep it, and have it judged; what fails is counted and never a score."""
    n, arm, k = place
    item = live.items[n]
    async with live.semaphore, live.tracer.span(REPLY, kind="role", item=item.context.conversation.id) as span:
        found = live.texts[place] = await reply_to(live, item, place)
        if isinstance(found, NoReply):
            live.missing[arm][found.kind] += 1
            span.failed(f"{found.kind}: {found.detail}")
            live.arrays.values[n, arm, k, len(live.questions)] = 0.0  # the first check: that there is a reply
            return
        answers = live.answers[place] = await judged(live, item, found.text)
        live.arrays.length[n, arm, k] = len(found.text)
        live.arrays.values[n, arm, k] = values_of(live, answers, found.text, item.systems[arm])
        if failed := [one for one in answers if isinstance(one, Unanswered)]:
            live.missing[arm][f"judging {failed[0].outcome}"] += 1


async def reply_to(live: RemedyWork, item: ProofItem, place: Place) -> AssistantReply | NoReply:
    """Return a reply that was kept, or ask for one and keep it."""
    key = live.keys[place]
    about = item.context.conversation.id
    if (kept := live.kept.get(key, {}).get(about)) is not None:
        return AssistantReply(kept["text"]) if "text" in kept else NoReply(kept["kind"], kept["detail"])
    request = request_of(live, item, place)
    found = await continued(live.assistant, request, item.context)
    told = {"text": found.text} if isinstance(found, AssistantReply) else {"kind": found.kind, "detail": found.detail}
    if told.get("kind") not in ("pending", "error"):  # those may be others the next time
        await live.store.write_step(live.run, f"{REPLY} {key}", {about: told})  # under its id it can be forgotten
    return found


def request_of(live: RemedyWork, item: ProofItem, place: Place) -> ReplyRequest:
    """Return what the assistant is asked for a place."""
    return ReplyRequest(
        key=live.keys[place],
        item=item.context.conversation.id,
        system=item.systems[place[1]],
        messages=item.messages,
        seed=live.seed + place[2],
    )


async def judged(live: RemedyWork, item: ProofItem, text: str) -> list[Answer | Unanswered]:
    """Judge a reply in its conversation; the judge sees neither prompt nor arm."""
    conversation = item.context.with_reply(text)
    try:
        return await live.judge.judge_reply(conversation, live.questions)
    except PollexError:
        raise
    except Exception as error:
        detail = detail_of(error, live.secrets)
        return [Unanswered(question_id=q.id, outcome="error", detail=detail) for q in live.questions]


def values_of(live: RemedyWork, answers: Sequence[Answer | Unanswered], text: str, system: str) -> Floats:
    """Return what a reply is worth by each question and check `[question]`, from 0 to 1; better is higher."""
    judged_values = [value_of(q, answer) for q, answer in zip(live.questions, answers, strict=True)]
    return np.array([*judged_values, *(float(check(text, system)) for check in live.checks)])


def value_of(question: Question, answer: Answer | Unanswered) -> float:
    """Return an answer's worth; NaN where there is none. What never came up can't fail, and isn't done either."""
    if isinstance(answer, Unanswered):
        return float("nan")
    good = question.rubric is not None and question.rubric.polarity == "sat"
    if answer.never_came_up:
        return 0.5 if good else 1.0
    held = answer.value(question.options) / 10
    return held if good else 1 - held


async def look(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Look at what came in, and decide whether to go on."""
    live = await resources(runtime, RemedyWork)
    with live.tracer.span("look", kind="node") as span:
        outcome = live.arrays.outcome_at(state["look"], live.bounds)
        span.outputs([f"look {state['look'] + 1}: {OUTCOMES[outcome]}"])
    done = live.total - len(live.pending)
    return {"look": state["look"] + 1, "outcome": outcome, "done": done, "outcomes": dict(live.outcomes)}


def goes_on(state: RemedyState) -> str:
    """Choose what comes after a look."""
    return "prove" if state["outcome"] == GOING else "finish"


def build() -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled."""
    graph = StateGraph(RemedyState, context_schema=RemedyContext)
    for node in (freeze, prove, look, finish):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "freeze")
    graph.add_edge("freeze", "prove")
    graph.add_edge("prove", "look")
    graph.add_conditional_edges("look", goes_on, ["prove", "finish"])
    graph.add_edge("finish", END)
    return graph


graph = build().compile(name="remedy")
