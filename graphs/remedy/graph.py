"""`remedy`: looks for changes of a prompt, and proves them in four waves on users who took no part in finding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from pollex.errors import LimitReached
from pollex.graphs.batches import BatchState, finish
from pollex.graphs.context import Context, resources
from pollex.graphs.remedy.trial import RemedyWork, ask_second, ask_trial, empty, expect_written
from pollex.measures.looks import BETTER, LOOKS, NOTHING, WORSE

REGISTERED = "registered"
LEAST = 0.05
"""Of all users, more than the last look saw: with fewer, a cap of calls or cost ends a run without a verdict."""
OUTCOMES = {BETTER: "above zero", WORSE: "below zero", NOTHING: "no difference"}


class RemedyState(BatchState, total=False):
    """Where a remedy is.

    Attributes:
        look: Looks that were taken.
        edits: Names of the changes that are still in it.
        ended: Outcome of each proven change by name; see `measures.looks`.
        why: Why it ended before a proof; empty if it didn't.
    """

    look: int
    edits: list[str]
    ended: dict[str, int]
    why: str


@dataclass(frozen=True, kw_only=True)
class RemedyContext(Context):
    """What the user chose for `remedy`."""

    logs: str | list[str] = ""
    rubrics: str = ""
    prompt: str = ""
    target: str = ""
    edit: list[str] = field(default_factory=list)
    profiles: str = ""
    assistant: str = ""
    group_field: str = ""
    people: int = 0


async def gather(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Begin with the changes that the user gave, or with none."""
    live = await resources(runtime, RemedyWork)
    live.proven[:] = live.edits
    if live.edits:  # where people write the replies, they find all of them at once
        await expect_written(live, live.make_trial("flatter", ()), live.make_trial("prove", live.edits))
    return {"run": live.run, "edits": [one.name for one in live.edits], "look": 0, "ended": {}, "why": ""}


async def reproduce(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Ask again where replies failed and where they went well: under the old prompt, a plain one, and with hints."""
    live = await resources(runtime, RemedyWork)
    trial = live.make_trial("headroom", ())
    with live.tracer.span("reproduce", kind="node"):
        if trial.contexts:  # else there are too few to tell
            await ask_trial(live, trial)
            live.headroom[:] = [trial.arrays.headroom()]
        else:
            live.trials["headroom"] = trial
    return {"why": live.headroom[0].ended if live.headroom else ""}


async def propose(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Have changes proposed, and vet them."""
    live = await resources(runtime, RemedyWork)
    with live.tracer.span("propose", kind="node") as span:
        live.candidates[:] = await live.propose(live.trials["headroom"])
        good = [one.name for one in live.candidates if not one.refused]
        span.outputs(good)
    return {"edits": good, "why": "" if good else "no proposal was fit to be tried"}


async def accept(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Wait for a person to accept proposals: resumed with the names of those to try, or with `all`."""
    live = await resources(runtime, RemedyWork)
    good = {one.name: one for one in live.candidates if one.name in state["edits"]}
    asked = {"edits": [{"name": name, "purpose": one.purpose, "diff": one.diff} for name, one in good.items()]}
    given: Any = interrupt(asked)
    kept = list(good) if given == "all" else [name for name in good if name in given]
    return {"edits": kept, "why": "" if kept else "no proposal was accepted"}


async def select(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Try all on half of the contexts, the better half of them on the rest; keep the best."""
    live = await resources(runtime, RemedyWork)
    edits = [one for one in live.candidates if one.name in state["edits"]]
    if len(edits) > live.finalists:
        with live.tracer.span("select", kind="node") as span:
            trial = live.make_trial("select", edits)
            half = np.flatnonzero(trial.arrays.wave == 0).tolist()
            rest = np.flatnonzero(trial.arrays.wave == 1).tolist()
            await ask_trial(live, trial, half)
            better = best_of(trial.arrays, range(1, len(edits) + 1), 0, max(live.finalists, len(edits) // 2))
            await ask_trial(live, trial, rest, [0, *better])
            chosen = best_of(trial.arrays, better, 1, live.finalists)
            edits = [edits[arm - 1] for arm in chosen]
            span.outputs(one.name for one in edits)
    live.proven[:] = edits
    return {"edits": [one.name for one in edits]}


def best_of(arrays: Any, arms: Sequence[int], look: int, most: int) -> list[int]:
    """Return the arms that score best, in order."""
    return sorted(sorted(arms, key=lambda arm: -arrays.score(look, arm))[:most])


async def flatter(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Plant a prompt that only has replies claim to do well: does the judge believe it?"""
    live = await resources(runtime, RemedyWork)
    trial = live.make_trial("flatter", ())
    with live.tracer.span("flatter", kind="node"):
        await ask_trial(live, trial)
    return {"asked": {"flatter": len(trial.contexts)}}


async def freeze(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Write down what is asked, in which order, and how it is decided, before the first reply is asked for."""
    live = await resources(runtime, RemedyWork)
    trial = live.trials["prove"] = live.make_trial("prove", live.proven)
    await live.store.write_step(live.run, REGISTERED, dict(live.frozen(trial, live.proven)))
    return {"total": len(trial.contexts)}


async def prove(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Ask for and judge the replies of a wave, both arms in turn."""
    live = await resources(runtime, RemedyWork)
    trial = live.trials["prove"]
    mine = np.flatnonzero(trial.arrays.wave == state["look"]).tolist()
    ids = [trial.contexts[n].conversation.id for n in mine]
    arms = [arm for arm in range(len(trial.systems)) if arm not in live.ended]
    with live.tracer.span("prove", kind="node", inputs=ids):
        try:
            await ask_trial(live, trial, mine, arms)
        except LimitReached:
            live.cut[:] = [trial.cut(arms, state["look"])]
            if live.cut[0] < state["look"] / LOOKS + LEAST:  # nothing new to look at
                raise
            await live.store.write_step(live.run, REGISTERED, dict(live.frozen(trial, live.proven)))
    return {"batch": ids, "asked": {"prove": len(mine)}}


async def look(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:
    """Look at what came in, and decide whether to go on."""
    live = await resources(runtime, RemedyWork)
    trial = live.trials["prove"]
    with live.tracer.span("look", kind="node") as span:
        alpha = live.level(live.frozen(trial, live.proven))
        live.ended.update(trial.arrays.looked(state["look"], alpha, live.ended, *live.cut))
        ended = {live.proven[arm - 1].name: one.outcome for arm, one in live.ended.items()}
        span.outputs([f"look {state['look'] + 1} of {LOOKS}: {name} {OUTCOMES[one]}" for name, one in ended.items()])
    return {"look": state["look"] + 1, "ended": ended, "outcomes": dict(live.outcomes)}


async def compare(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Have a second judge compare the replies without rubrics, and judge them by other words."""
    live = await resources(runtime, RemedyWork)
    with live.tracer.span("compare", kind="node"):
        for arm, one in live.ended.items():
            if one.outcome == BETTER and live.second is not None:
                n = len(live.trials["prove"].contexts)
                live.wins[arm], live.worded[arm] = empty(n), empty(n, 2, len(live.second.wordings))
                await ask_second(live, arm)
        await live.store.settle()
    return {"asked": {"compare": len(live.wins)}}


async def people(state: RemedyState, runtime: Runtime[Any]) -> RemedyState:  # noqa: ARG001
    """Wait for people to compare pairs, where that was asked for: resumed with their choices by pair."""
    live = await resources(runtime, RemedyWork)
    better = [arm for arm, one in live.ended.items() if one.outcome == BETTER]
    if better and (pairs := live.sheet(live.trials["prove"], better[0])):
        live.opinions.update(interrupt({"pairs": pairs}))
    return {"asked": {"people": len(live.opinions)}}


def build() -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled."""
    graph = StateGraph(RemedyState, context_schema=RemedyContext)
    for node in (gather, reproduce, propose, accept, select, flatter, freeze, prove, look, compare, people, finish):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "gather")
    for before, after, instead in (
        ("gather", "reproduce", "flatter"),
        ("reproduce", "propose", "finish"),
        ("propose", "accept", "finish"),
        ("accept", "select", "finish"),
    ):
        graph.add_conditional_edges(before, route(after, instead), [after, instead])
    for before, after in (("select", "flatter"), ("flatter", "freeze"), ("freeze", "prove"), ("prove", "look"),
                          ("compare", "people"), ("people", "finish")):  # fmt: skip
        graph.add_edge(before, after)
    graph.add_conditional_edges("look", goes_on, ["prove", "compare"])
    graph.add_edge("finish", END)
    return graph


def route(after: str, instead: str) -> Any:
    """Return what chooses the next node: what ended is finished, what the user gave is proven at once."""

    def chosen(state: RemedyState) -> str:
        return instead if state["why"] or (instead == "flatter" and state["edits"]) else after

    return chosen


def goes_on(state: RemedyState) -> str:
    """Choose what comes after a look."""
    return "compare" if len(state["ended"]) == len(state["edits"]) else "prove"
