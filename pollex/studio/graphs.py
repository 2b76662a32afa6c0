"""The graphs as LangGraph Studio and its HTTP API run them: those under `graphs/`, with what their context names.

A server gives a graph a context, JSON values, and keeps its checkpoints. The use case of the same
name reads the logs, hires the roles and begins the run in the store; then it waits until the
server's graph has ended.
"""

import asyncio
import contextvars
import json
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any

from langgraph.channels import BinaryOperatorAggregate
from langgraph.runtime import Runtime

from pollex.errors import PollexError
from pollex.graphs.context import (
    IS_FORKED_THREAD,
    SERVED_RUN_ID,
    Context,
    Resources,
    hold_resources_of_thread,
)
from pollex.graphs.learn.graph import build as build_learn
from pollex.graphs.learn.refit import build as build_refit
from pollex.graphs.learn.spur import build as build_spur
from pollex.graphs.run import RUN_ON_SERVER
from pollex.graphs.score import build as build_score
from pollex.rooms import list_hooks
from pollex.studio import use_cases
from pollex.studio.hooks import ContextUseCase, ServedGraph, StudioGraph

GraphState = dict[str, Any]
"""The state of whatever graph, or an update of it, by the names of its keys."""

NodeFunction = Callable[..., Coroutine[object, None, GraphState]]
"""A node of a graph; called with its state, and by name with its runtime."""

LAST_NODES = ("finish", "assess")
"""Nodes after which a graph has ended."""


def make_error_for_callers(error: PollexError) -> PollexError:
    """Return an error as a server passes it on: of others than a ValueError it tells the class alone."""
    if isinstance(error, ValueError):
        return error

    # the same class, and a ValueError besides; its constructor may want other arguments
    kind = type(error)
    both = type(
        kind.__name__,
        (kind, ValueError),
        {"__module__": kind.__module__, "__doc__": kind.__doc__},
    )
    raised: PollexError = both.__new__(both, *error.args)
    raised.__dict__.update(vars(error))

    return raised


PARALLEL_NODES = (
    "judge_sat",
    "judge_dsat",
    "grade_by_rules",
    "grade_plainly",
    "update_sat",
    "update_dsat",
)
"""Nodes that run beside others: only one of a step may say which run it is."""


class StudioRun:
    """A use case that has begun a run, in a thread and an event loop of its own, for the nodes of a server's graph."""

    def __init__(
        self,
        thread: str,
        use_case: ContextUseCase,
        context: Context,
        run: str,
        *,
        forked: bool = False,
    ) -> None:
        self._thread = thread
        self._context = context
        self._gone_on = run
        self._forked = forked
        self._done = set[str]()
        self._last: GraphState | None = None
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: asyncio.Future[GraphState] | None = None
        self._failure: BaseException | None = None
        self.run = ""
        # variables of the context hold in the new thread, too
        work = contextvars.copy_context().run
        self._work = threading.Thread(
            target=work,
            args=(self._run, use_case),
            name=thread,
            daemon=True,
        )
        self._work.start()

    def _run(self, use_case: ContextUseCase) -> None:
        # in place of running its graph the use case waits for the server's nodes
        RUN_ON_SERVER.set(self._wait)
        SERVED_RUN_ID.set(self._gone_on)
        IS_FORKED_THREAD.set(self._forked)
        # a development server's, which looks at every loop:
        if check := sys.modules.get("blockbuster.blockbuster"):
            # this one serves one run, and nobody waits in it for another
            check._skip.value = True

        try:
            use_case(self._context)
        except BaseException as error:
            # before the run has begun, whoever waits for it gets the error; later the end raises it
            if self._ready.done():
                self._failure = error
            else:
                self._ready.set_exception(error)

    async def _wait(self, live: Resources) -> GraphState:
        """Hold the run's resources until its graph has ended; return its last state."""
        self._ended = asyncio.get_running_loop().create_future()
        self.run = live.run
        with hold_resources_of_thread(self._thread, live):
            self._ready.set_result(asyncio.get_running_loop())
            return await self._ended

    async def begun(self) -> bool:
        """Return whether the use case came so far as to begin the run."""
        ready = asyncio.wrap_future(self._ready)
        # `wait` doesn't raise the error that kept the run from beginning
        await asyncio.wait([ready])
        return ready.exception() is None

    async def carry_out(
        self,
        node: NodeFunction,
        state: object,
        runtime: Runtime[Context],
    ) -> GraphState:
        """Carry a node out where the use case works; raise what kept that from beginning the run."""
        loop = self._ready.result()
        result: GraphState = await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(node(state, runtime=runtime), loop)
        )
        return result

    def keep(
        self,
        step: str,
        state: GraphState,
        update: GraphState,
        joined: Collection[str],
    ) -> None:
        """Keep the state that the run has after a node.

        Args:
            joined: Keys whose values are joined to those before.
        """
        # nodes side by side begin with one state, to which each adds its update
        if self._last is None or step not in PARALLEL_NODES:
            before = dict(state)
        else:
            before = self._last

        added = {}
        for key, value in update.items():
            added[key] = before.get(key, {}) | value if key in joined else value

        self._done.add(step)
        self._last = before | added

    def is_left(self, step: str, state: Mapping[str, object]) -> bool:
        """Tell whether a node begins with an earlier state than the run has: somebody forked it.

        What somebody changes in the last state, before a node that hasn't run yet, is an edit of
        this run.
        """
        if self._last is None or step in PARALLEL_NODES:
            return False

        # compared as text, since what the server has kept may come back in other classes
        changed = json.dumps(state, sort_keys=True, default=str) != json.dumps(
            self._last, sort_keys=True, default=str
        )
        return (step in self._done and changed) or not self._last.keys() <= state.keys()

    async def leave(self) -> None:
        """End the use case where it is; its run can be gone on with."""
        if self._ended is not None:
            # the future belongs to the loop of the other thread
            self._ended.get_loop().call_soon_threadsafe(self._ended.cancel)
        await asyncio.to_thread(self._work.join)

    async def end(self, state: GraphState) -> None:
        """Let the use case go on to its end; raise what went wrong there."""
        assert self._ended is not None, "a node ran"
        self._ended.get_loop().call_soon_threadsafe(self._ended.set_result, state)
        await asyncio.to_thread(self._work.join)
        if self._failure is not None:
            raise self._failure


_runs_by_thread: dict[str, StudioRun] = {}


def compile_served_graph(
    name: str,
    graph: ServedGraph,
    use_case: ContextUseCase,
) -> Any:
    """Compile a graph whose nodes are carried out in a session of their thread."""
    # keys whose values of several nodes are joined
    joined = set()
    for key, channel in graph.channels.items():
        if isinstance(channel, BinaryOperatorAggregate):
            joined.add(key)

    context = graph.context_schema
    assert context is not None, "a form is made of the fields of the context"
    for step, spec in graph.nodes.items():
        # the server runs what is put in the node's place; the session carries out the node
        work: Any = spec.runnable
        work.afunc = _run_node_in_session(
            step,
            work.afunc,
            context,
            use_case,
            joined,
        )

    return graph.compile(name=name)


def _run_node_in_session(
    step: str,
    node: NodeFunction,
    schema: type[Context],
    use_case: ContextUseCase,
    joined: Collection[str],
) -> Any:
    async def carried_out(state: GraphState, *, runtime: Runtime[Context]) -> GraphState:
        thread = (runtime.execution_info and runtime.execution_info.thread_id) or ""
        if thread in _runs_by_thread and _runs_by_thread[thread].is_left(step, state):
            await _runs_by_thread.pop(thread).leave()
            context = runtime.context or schema()
            _runs_by_thread[thread] = StudioRun(
                thread,
                use_case,
                context,
                state.get("run", ""),
                forked=True,
            )
        elif thread not in _runs_by_thread:
            _runs_by_thread[thread] = StudioRun(
                thread,
                use_case,
                runtime.context or schema(),
                state.get("run", ""),
            )

        session = _runs_by_thread[thread]
        if not await session.begun():
            del _runs_by_thread[thread]  # the next try begins anew

        try:
            update = await session.carry_out(node, state, runtime)
            # a fork has an id of its own, and the run before it as its parent
            if step not in PARALLEL_NODES and state.get("run", "") not in ("", session.run):
                update = {
                    **update,
                    "run": session.run,
                    "parent": state["run"],
                }

            session.keep(step, state, update, joined)
            # after the last node the use case goes on to its own end
            if step in LAST_NODES:
                await _runs_by_thread.pop(thread).end({**state, **update})
        except PollexError as error:
            raise make_error_for_callers(error) from error

        return update

    carried_out.__name__ = step
    carried_out.__doc__ = node.__doc__
    return carried_out


learn = compile_served_graph("learn", build_learn(), use_cases.learn_from_form)
spur = compile_served_graph("spur", build_spur(), use_cases.learn_by_spur)
refit = compile_served_graph("refit", build_refit(), use_cases.refit_from_form)
score = compile_served_graph("score", build_score(), use_cases.score_from_form)
# graphs of rooms become names of this module, where the server looks for them
globals().update(
    {
        graph.name: compile_served_graph(graph.name, graph.build(), graph.use_case)
        for graph in list_hooks(StudioGraph)
    }
)
