"""Runs of graphs: carried out with checkpoints, and their states."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pollex.errors import WrongUse
from pollex.graphs.context import Resources, hold_resources
from pollex.store.database import CHECKPOINTS, PATIENCE, error_of
from pollex.store.runs import Run
from pollex.store.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    AnyGraph = StateGraph[Any, Any, Any, Any]

OUTSIDE: ContextVar[Callable[[Resources], Awaitable[dict[str, Any]]] | None] = ContextVar("outside", default=None)
"""Carries runs out in place of this process: a server that has the graph itself, and checkpoints of its own."""


@asynccontextmanager
async def compile_on(graph: AnyGraph, store: Store) -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
    """Compile a graph with the checkpoints of a store.

    Raises:
        PollexError: They can't be read or written.
    """
    import aiosqlite  # with LangGraph's half a second, which reading results does not need
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path = store.folder / CHECKPOINTS
    try:
        path.touch(0o600)
        async with aiosqlite.connect(path, timeout=PATIENCE) as connection:
            await connection.execute("PRAGMA synchronous = NORMAL")  # what a kill leaves is whole; the rest is stored
            yield graph.compile(checkpointer=AsyncSqliteSaver(connection))
    except sqlite3.Error as failure:
        raise error_of(path, failure) from failure


def thread_of(run: str, steps: int = 0) -> RunnableConfig:
    """Return LangGraph's settings for a run: its thread, and a recursion limit that fits.

    LangGraph's default of 10,007 would let an endless loop run on.
    """
    return {"configurable": {"thread_id": run}, "recursion_limit": steps + 60}


GRAPHS = {
    "learn": "learn.graph",
    "refit": "learn.refit",
    "answer": "grade.answer",
    "grade": "grade.graph",
    "ask": "questionnaire",
    "judge": "judge.graph",
    "remedy": "remedy.graph",
    "simulate": "simulate.graph",
}
"""Modules by command; those of `score` are not named."""


def graph_of(run: Run) -> AnyGraph:
    """Build the graph of a run."""
    named = "learn.spur" if run.fingerprint.get("method") == '"spur"' else GRAPHS.get(run.command, "score")
    graph: AnyGraph = import_module(f"pollex.graphs.{named}").build()
    return graph


async def states_of(store: Store, run: Run) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return the states of a run after its nodes, the first one first: which nodes had run, and the state."""
    async with compile_on(graph_of(run), store) as compiled:
        found = [one async for one in compiled.aget_state_history(thread_of(run.id))][::-1]
    return [(before.next, after.values) for before, after in pairwise(found)]


async def state_after(store: Store, run: Run, node: str) -> dict[str, Any]:
    """Return the last state of a run after a node.

    Raises:
        WrongUse: The node didn't run, or the run has no checkpoints.
    """
    states = await states_of(store, run)
    found: dict[str, Any] | None = next((state for nodes, state in reversed(states) if node in nodes), None)
    if found is None:
        ran = ", ".join(dict.fromkeys(name for nodes, _ in states for name in nodes if name != "__start__"))
        raise WrongUse(f"{run.id} has no state after {node!r}", remedy=f"name one of its nodes: {ran or 'it has none'}")
    return found


async def carry_out(
    graph: AnyGraph,
    live: Resources,
    context: Any,
    *,
    anew: bool = False,
    people: Callable[[Any], Any] | None = None,
    after: str = "",
) -> dict[str, Any]:
    """Carry a run out, from its last checkpoint on if it has one; return its state.

    Args:
        anew: Whether it begins at its first node all the same.
        after: The node after which a run goes on that has ended; empty for the first node.
        people: Given what an interrupt asks, what it is resumed with; where that is nothing, the run waits.
    """
    if outside := OUTSIDE.get():
        return await outside(live)
    from langgraph.types import Command  # as in `checkpointed`

    settings = thread_of(live.run, 8 * (live.total // live.batch + 2))
    live.begin()
    async with compile_on(graph, live.store) as compiled:
        at = await compiled.aget_state(settings)
        left = {task.name for task in at.tasks}  # not `next`: it leaves out a node that a kill cut off after its writes
        if after and not left and at.values:
            await compiled.aupdate_state(settings, None, as_node=after)
            left = {after}
        if left and live.pending and not anew:  # its batch is planned again: what nodes had in memory is gone
            await compiled.aupdate_state(settings, None, as_node="commit_batch")
        given: Any = None if left and not anew else {}
        with hold_resources(live.run, live), live.tracer.span(live.run.partition("-")[0], kind="graph"):
            while True:
                found: dict[str, Any] = await compiled.ainvoke(given, settings, context=context, durability="sync")
                asked = found.get("__interrupt__")
                answer = people(asked[0].value) if asked and people else None
                if not answer:
                    break
                given = Command(resume=answer)
    await live.store.settle()  # the spans, too
    return found
