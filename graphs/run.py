"""The beginning, resumption and end of a run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import Interrupted, PollexError, ResumeRefused, WrongUse
from pollex.graphs.context import BATCH, NullProgress, Progress, Resources, held
from pollex.graphs.kept_progress import KeptProgress
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import RETRYABLE, Outcome
from pollex.store.database import CHECKPOINTS, PATIENCE, error_of
from pollex.store.resume import find_run, resumable, runs
from pollex.store.rows import conversation_rows
from pollex.store.runs import FINISHED, Run, differences
from pollex.store.spans import Tracer
from pollex.store.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    AnyGraph = StateGraph[Any, Any, Any, Any]
    from pollex.rubrics.learning.settings import LearnSettings

FORMAT = "3"
"""Of states and of nodes' names: a checkpoint of another can't be gone on with."""


def keep_conversations(
    store: Store, run: str, logs: Logs, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> None:
    """Store all conversations of the log with their side of the split, except those stored."""
    known = kept_ids(store, run)
    used = {c.id for c in (*training, *held_out)}
    store.put(conversation_rows(run, [c for c in training if c.id not in known], side="train"))
    store.put(conversation_rows(run, [c for c in held_out if c.id not in known], side="test"))
    store.put(conversation_rows(run, [c for c in logs if c.id not in known | used]))


def kept_ids(store: Store, run: str) -> set[str]:
    """Return the ids of a run's stored conversations."""
    return {row["id"] for row in store.ask(run, "SELECT id FROM conversations")}


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Place and settings of a run; the same for all graphs.

    Attributes:
        arguments: As given by the user, for `pollex runs`.
        resume: Go on with the last unfinished run of the same fingerprint.
        retry_outcomes: Outcomes that a resume asks about again.
        secrets: Keys that must not be written anywhere.
        batch: Conversations in flight at once.
        at_once: Of these, how many are asked about at once: a few more than the endpoint has slots keep it busy.
        traced: Receives the run's tracer when the run begins.
        used: Calls, tokens and outcomes so far, as JSON values; stored with the run's progress.
        place: Where a model is asked, without secrets; empty without one. A resume asks there, or is refused.
    """

    store: Store
    progress: Progress
    arguments: Mapping[str, Any]
    resume: bool = False
    retry_outcomes: frozenset[Outcome] = RETRYABLE
    secrets: Collection[str] = ()
    batch: int = BATCH
    at_once: int = BATCH
    traced: Callable[[Tracer], None] = lambda _tracer: None
    used: Callable[[], Mapping[str, Any]] = dict
    place: str = ""

    def __post_init__(self) -> None:
        """Have progress kept as well as shown."""
        if not isinstance(self.progress, KeptProgress):
            object.__setattr__(self, "progress", KeptProgress(self.progress, self.store, self.used))

    def tracer(self, run: str) -> Tracer:
        """Create the run's tracer and announce it to its subscriber."""
        tracer = Tracer(self.store, run, self.secrets)
        self.traced(tracer)
        if isinstance(self.progress, KeptProgress):
            self.progress.watch(tracer)
        return tracer

    def of_run(self, run: str) -> dict[str, Any]:
        """Return the fields that every graph's `Context` has, for a run."""
        return {
            "store": self.store,
            "run": run,
            "tracer": self.tracer(run),
            "secrets": self.secrets,
            "progress": self.progress,
            "batch": self.batch,
            "semaphore": asyncio.Semaphore(self.at_once),
        }

    def whole(self, fingerprint: Mapping[str, str]) -> dict[str, str]:
        """Return a run's fingerprint with what every run has."""
        return {**fingerprint, "graph": FORMAT} | ({"endpoint": self.place} if self.place else {})

    @classmethod
    def of(cls, store: Store, **changes: Any) -> RunSettings:
        """Make a setting without progress and arguments, for use from Python."""
        progress, arguments = changes.pop("progress", NullProgress()), changes.pop("arguments", {})
        return cls(store=store, progress=progress, arguments=arguments, **changes)


@asynccontextmanager
async def running(
    command: str, fingerprint: Mapping[str, str], setting: RunSettings, roles: Sequence[str], named: Run | None = None
) -> AsyncIterator[Run]:
    """Begin or resume a run, and record its end in every case but a kill.

    Args:
        named: The run to go on with, where the user named one.
    """
    store, fingerprint = setting.store, setting.whole(fingerprint)
    if named is None and GONE_ON.get():
        named = same_settings(find_run(store, GONE_ON.get()), fingerprint, store)
    if named is not None:
        run = named
    elif setting.resume:
        run = resumable_run(store, command, fingerprint)
    else:
        run = store.begin(command, arguments=setting.arguments, fingerprint=fingerprint, versions=versions())
    store.take_up(run.id, roles=roles)
    kept = setting.progress
    assert isinstance(kept, KeptProgress), "made so with the setting"
    try:
        async with kept.of_run(run.id):
            yield run
    except (KeyboardInterrupt, asyncio.CancelledError, Interrupted):
        store.finish(run.id, "interrupted", roles=roles)
        raise
    except PollexError as error:
        store.finish(run.id, "failed", roles=roles, result={"error": error.what})
        raise
    except Exception as error:
        store.finish(run.id, "failed", roles=roles, result={"error": type(error).__name__})
        raise


def same_settings(run: Run, fingerprint: Mapping[str, str], store: Store) -> Run:
    """Return a run that has these settings.

    Raises:
        ResumeRefused: It was started with others; the message says with what.
    """
    if changed := differences(run.fingerprint, fingerprint):
        what = f"{run.id} was started with other settings ({'; '.join(changed)})"
        raise ResumeRefused(what, where=str(store.folder), remedy="go on with the settings it was started with")
    return run


def resumable_run(store: Store, command: str, fingerprint: Mapping[str, str]) -> Run:
    """Return the run that `--resume` goes on with.

    The last run is taken up though it ended, too: a kill may come between its end and the files that are made of it.
    Nothing of it is done again.
    """
    last = next((run for run in reversed(runs(store)) if run.command == command), None)
    if last and last.status in FINISHED and last.fingerprint == dict(fingerprint):
        return last
    return resumable(store, command, fingerprint)


def fingerprint_of(
    logs: Logs, *, settings: LearnSettings, profile: DomainProfile, roles: Mapping[str, str]
) -> dict[str, str]:
    """Return everything a learning run's result depends on, as readable settings.

    A refused resume shows which of them changed.
    """
    return {
        "data": logs.fingerprint[:12],
        **{name: json.dumps(value) for name, value in vars(settings).items()},
        "domain": digest(profile.model_dump(mode="json")),
        **{role: fingerprint[:12] for role, fingerprint in roles.items()},
    }


def digest(value: Any) -> str:
    """Twelve hex digits of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def versions() -> dict[str, str]:
    """Return the versions of pollex and of the packages that affect results most."""
    return {
        name: version(name)
        for name in ("pollex", "langgraph", "numpy", "scikit-learn", "sentence-transformers", "duckdb")
    }


GONE_ON: ContextVar[str] = ContextVar("gone_on", default="")
"""Id of the run that a server's thread is of, in a server that was started again."""

OUTSIDE: ContextVar[Callable[[Resources], Awaitable[dict[str, Any]]] | None] = ContextVar("outside", default=None)
"""Carries runs out in place of this process: a server that has the graph itself, and checkpoints of its own."""


@asynccontextmanager
async def checkpointed(graph: AnyGraph, store: Store) -> AsyncIterator[CompiledStateGraph[Any, Any, Any, Any]]:
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
    "ask": "questionnaire.graph",
    "judge": "judge.graph",
    "simulate": "simulate.graph",
}
"""Modules by command; those of `score` are not named."""


def graph_of(run: Run) -> AnyGraph:
    """Build the graph of a run."""
    named = "learn.spur" if run.fingerprint.get("method") == '"spur"' else GRAPHS.get(run.command, "score.graph")
    graph: AnyGraph = import_module(f"pollex.graphs.{named}").build()
    return graph


async def states_of(store: Store, run: Run) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return the states of a run after its nodes, the first one first: which nodes had run, and the state."""
    async with checkpointed(graph_of(run), store) as compiled:
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
    async with checkpointed(graph, live.store) as compiled:
        at = await compiled.aget_state(settings)
        left = set(at.next)
        if after and not left and at.values:
            await compiled.aupdate_state(settings, None, as_node=after)
            left = {after}
        if left and live.pending and not anew:  # its batch is planned again: what nodes had in memory is gone
            await compiled.aupdate_state(settings, None, as_node="commit_batch")
        given: Any = None if left and not anew else {}
        with held(live.run, live), live.tracer.span(live.run.partition("-")[0], kind="graph"):
            while True:
                found: dict[str, Any] = await compiled.ainvoke(given, settings, context=context, durability="sync")
                asked = found.get("__interrupt__")
                answer = people(asked[0].value) if asked and people else None
                if not answer:
                    break
                given = Command(resume=answer)
    await live.store.settle()  # the spans, too
    return found
