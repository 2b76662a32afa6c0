"""Runs of graphs: carried out with checkpoints, and their states."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pollex.errors import StoreDamaged, WrongUse
from pollex.graphs.context import Resources, hold_resources_of_thread
from pollex.rooms import list_hooks
from pollex.store.database import (
    CHECKPOINTS_FILE_NAME,
    LIST_TABLES_QUERY,
    LOCK_TIMEOUT_SECONDS,
    describe_database_error,
    require_plain_tables,
)
from pollex.store.folder import require_plain_path
from pollex.store.runs import Run
from pollex.store.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot
    from langgraph.typing import ContextT, InputT, OutputT, StateT

RUN_ON_SERVER: ContextVar[Callable[[Resources], Awaitable[dict[str, object]]] | None] = ContextVar(
    "outside",
    default=None,
)
"""Carries runs out in place of this process: a server that has the graph itself, and checkpoints of its own."""


@asynccontextmanager
async def compile_graph_with_checkpoints(
    graph: StateGraph[StateT, ContextT, InputT, OutputT], store: Store
) -> AsyncIterator[CompiledStateGraph[StateT, ContextT, InputT, OutputT]]:
    """Compile a graph with the checkpoints of a store.

    Raises:
        PollexError: They can't be read or written.
    """
    import aiosqlite  # with LangGraph's half a second, which reading results does not need

    from pollex.graphs.checkpoints import Checkpoints

    path = store.folder / CHECKPOINTS_FILE_NAME
    require_plain_path(path)
    try:
        path.touch(0o600)
        async with aiosqlite.connect(path, timeout=LOCK_TIMEOUT_SECONDS) as connection:
            # the file may be a stranger's
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
                await connection.execute(f"PRAGMA {pragma}")
            require_plain_tables(await connection.execute_fetchall(LIST_TABLES_QUERY), path)
            # what a kill leaves is whole; the rest is stored
            await connection.execute("PRAGMA synchronous = NORMAL")
            yield graph.compile(checkpointer=Checkpoints(connection, path, graph))
    except sqlite3.Error as failure:
        raise describe_database_error(path, failure) from failure


def make_run_config(run: str, steps: int = 0) -> RunnableConfig:
    """Return LangGraph's settings for a run: its thread, and a recursion limit that fits.

    LangGraph's default of 10,007 would let an endless loop run on.
    """
    return {"configurable": {"thread_id": run}, "recursion_limit": steps + 60}


def build_run_graph(run: Run) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph of a run."""
    from pollex.graphs.hooks import RunGraph  # a run that is carried out brings its graph

    modules = {graph.command: graph.module for graph in list_hooks(RunGraph)}
    module = modules.get(run.command, "pollex.graphs.score")
    if run.fingerprint.get("method") == '"spur"':
        module = "pollex.graphs.learn.spur"

    # each graph has a state and a context of its own
    graph: StateGraph[Any, Any, Any, Any] = import_module(module).build()
    return graph


async def list_states_of_run(
    store: Store, run: Run
) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return the states of a run after its nodes, the first one first: which nodes had run, and the state."""
    from pollex.graphs.checkpoints import (
        explain_errors_of_damaged_checkpoint,  # as in `compile_graph_with_checkpoints`
    )

    async with compile_graph_with_checkpoints(build_run_graph(run), store) as compiled:
        with explain_errors_of_damaged_checkpoint(store.folder / CHECKPOINTS_FILE_NAME):
            newest_first = [
                snapshot async for snapshot in compiled.aget_state_history(make_run_config(run.id))
            ]

    states: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for before, after in pairwise(reversed(newest_first)):
        states.append((before.next, after.values))

    return states


async def get_current_state_of_run(store: Store, run: Run) -> StateSnapshot:
    """Return the state that a run has, and what waits there.

    Raises:
        StoreDamaged: It isn't what a run wrote.
    """
    from pollex.graphs.checkpoints import (
        explain_errors_of_damaged_checkpoint,  # as in `compile_graph_with_checkpoints`
    )

    async with compile_graph_with_checkpoints(build_run_graph(run), store) as compiled:
        with explain_errors_of_damaged_checkpoint(store.folder / CHECKPOINTS_FILE_NAME):
            return await compiled.aget_state(make_run_config(run.id))


async def get_last_state_after_node(store: Store, run: Run, node: str) -> dict[str, Any]:
    """Return the last state of a run after a node; raise as `get_states_before_and_after_node`."""
    _, after = await get_states_before_and_after_node(store, run, node)
    return after


async def get_states_before_and_after_node(
    store: Store, run: Run, node: str
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the state that a node of a run began with the last time, and the state after it.

    Raises:
        WrongUse: The node didn't run, or the run has no checkpoints.
    """
    states = await list_states_of_run(store, run)
    # the last time that the node ran
    place = next(
        (number for number, (nodes, _) in reversed([*enumerate(states)]) if node in nodes),
        None,
    )
    if place is None:
        raise WrongUse(
            f"{run.id} has no state after {node!r}",
            hint=_list_node_names_of_run(run, states),
        )

    before: dict[str, object] = states[place - 1][1] if place else {}
    return before, states[place][1]


def _list_node_names_of_run(
    run: Run, states: Sequence[tuple[tuple[str, ...], Mapping[str, object]]]
) -> str:
    """Name the nodes of a run's graph, those that ran first; or say where its states are."""
    nodes = []
    for name in build_run_graph(run).nodes:
        if not name.startswith("__"):
            nodes.append(name)

    names_that_ran = []
    for names, _ in states:
        for name in names:
            if name in nodes:
                names_that_ran.append(name)

    ran = list(dict.fromkeys(names_that_ran))
    others = ", ".join(name for name in nodes if name not in ran)
    if not ran:
        return (
            f"this store has no states of it; a LangGraph server keeps those of its runs itself, "
            f"by thread; nodes of this graph: {others}"
        )

    return f"name one of its nodes: {', '.join(ran)}" + (f"; not run: {others}" if others else "")


async def carry_out_run(
    graph: StateGraph[StateT, ContextT, InputT, OutputT],
    live: Resources,
    context: ContextT,
    *,
    anew: bool = False,
    people: Callable[[Any], object] | None = None,
    after: str = "",
) -> dict[str, Any]:
    """Carry a run out, from its last checkpoint on if it has one; return its state.

    Args:
        anew: Whether it begins at its first node all the same.
        after: The node after which a run goes on that has ended; empty for the first node.
        people: Given what an interrupt asks, what it is resumed with; where that is nothing, the
            run waits.
    """
    if outside := RUN_ON_SERVER.get():
        return await outside(live)

    from langgraph.types import Command  # as in `compile_graph_with_checkpoints`

    from pollex.graphs.checkpoints import explain_errors_of_damaged_checkpoint

    # as many steps as the batches take, with room
    settings = make_run_config(live.run, 8 * (live.total // live.batch + 2))
    live.begin()
    async with compile_graph_with_checkpoints(graph, live.store) as compiled:
        with explain_errors_of_damaged_checkpoint(live.store.folder / CHECKPOINTS_FILE_NAME):
            at = await compiled.aget_state(settings)
        # not `next`: it leaves out a node that a kill cut off after its writes
        left = {task.name for task in at.tasks}
        if after and not left and at.values:
            await compiled.aupdate_state(settings, None, as_node=after)
            left = {after}
        # its batch is planned again: what nodes had in memory is gone
        if left and live.pending and not anew:
            await compiled.aupdate_state(settings, None, as_node="commit_batch")
        # a state that waits goes on; without one the graph begins
        goes_on = bool(left) and not anew
        graph_input: Any = None if goes_on else {}
        with (
            hold_resources_of_thread(live.run, live),
            live.tracer.span(live.run.partition("-")[0], kind="graph"),
            _explain_unfit_state(live.run, goes_on=goes_on),
        ):
            # until nobody has an answer to what the graph asks
            while True:
                state: dict[str, Any] = await compiled.ainvoke(
                    graph_input,
                    settings,
                    context=context,
                    durability="sync",
                )
                interrupts = state.get("__interrupt__")
                answer = None
                if interrupts and people:
                    answer = people(interrupts[0].value)
                if not answer:
                    break
                graph_input = Command(resume=answer)

    await live.store.settle()  # the spans, too
    return state


@contextmanager
def _explain_unfit_state(run: str, *, goes_on: bool) -> Iterator[None]:
    """Say that it is the kept state that nodes can't work with, where they began with one."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as failure:
        if not goes_on:
            raise
        what = f"{run} can't go on from the state that the store has of it ({type(failure).__name__}: {failure})"
        raise StoreDamaged(what, hint="begin a new run, without resuming") from failure
