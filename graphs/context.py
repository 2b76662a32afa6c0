"""What nodes work with: the context, which the user chose, and the resources made for it.

The context is JSON values, and a form in LangGraph Studio. Resources (roles, store, tracer,
progress) are live: a process holds those of each run that it carries out, and nodes find them by
their thread, which is the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.store.rows import AnswerRows
from pollex.store.spans import Tracer
from pollex.store.store import Store

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


MAX_CONVERSATIONS_PER_BATCH = 1024
"""Conversations in flight at once. How many calls are, the gateway's limiter decides; this bounds memory."""


class Progress(Protocol):
    """The progress of a run, and messages to the user meanwhile."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage, or change its total; `done` items were finished before a resume."""

    def advance(self, stage: str, by: int = 1) -> None:
        """Count items of a stage as done."""

    def note(self, text: str) -> None:
        """Show a line to the user."""


class NullProgress:
    """Progress that is shown nowhere."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Ignore the stage."""

    def advance(self, stage: str, by: int = 1) -> None:
        """Ignore the items."""

    def note(self, text: str) -> None:
        """Ignore the line."""


class ConversationIndex:
    """An index of conversations by id, in memory or on disk."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._index = {conversation.id: i for i, conversation in enumerate(conversations)}

    def __getitem__(self, id_: str) -> Conversation:
        return self._conversations[self._index[id_]]

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the user chose, the same for all graphs: JSON values.

    Attributes:
        model: Name of an LLM; empty for the built-in roles.
        base_url: Where it is served, if not at OpenAI.
        store: Folder that keeps the run; empty for the usual one.
        max_calls: Calls at most; 0 for no limit.
    """

    model: str = ""
    base_url: str = ""
    store: str = ""
    max_calls: int = 0

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the context of a command's arguments; what a graph has no field for is left out."""
        values = {}
        for context_field in fields(cls):
            values[context_field.name] = arguments.get(context_field.name)
        settings = {}
        for name, value in values.items():
            if value is not None:
                settings[name] = value
        return cls(**settings)


@dataclass(frozen=True, kw_only=True)
class LogContext(Context):
    """What the user chose for a graph that reads logs.

    Attributes:
        label_field: Of the thumb or rating, where it isn't found by itself; what follows is as in
            `ReadOptions`.
        positive: Values that are positive: `>=4`, or words between commas; `negative` likewise, and
            `unrated`, which are no rating.
        columns: Which column is which part of a conversation: `{"role": "sender"}`.
        roles: Whose turns the log's names mean: `{"user": "Kunde"}`.
    """

    logs: str | list[str] = ""
    label_field: str = ""
    positive: str = ""
    negative: str = ""
    unrated: str = ""
    id_field: str = ""
    messages_field: str = ""
    group_field: str = ""
    judge_field: str = ""
    comment_field: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    encoding: str = ""
    on_duplicate: str = ""
    thumbs: str = ""
    pairs: bool = False
    query_seconds: int = 0
    max_bad: int = 0


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What the nodes of every graph work with in a run.

    Attributes:
        workers: Names of who works.
        secrets: Keys that must not be written anywhere.
        total: Number of all items.
        pending: Ids of the items that are not settled, in order; empty where nodes see for
            themselves.
        batch: Conversations in flight at once.
        semaphore: Limits how many questions are asked at once; others wait before their prompts are
            written.
    """

    store: Store
    run: str
    tracer: Tracer
    workers: Sequence[str] = ()
    secrets: Collection[str] = ()
    progress: Progress = field(default_factory=NullProgress)
    total: int = 0
    pending: dict[str, None] = field(default_factory=dict)
    batch: int = MAX_CONVERSATIONS_PER_BATCH
    semaphore: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_CONVERSATIONS_PER_BATCH)
    )

    def begin(self) -> None:
        """Show how far an earlier session came."""

    async def finish(
        self, result: Mapping[str, object], *, partly: bool
    ) -> Literal["partial", "done"]:
        """Record what the run came to, and return its status."""
        status: Literal["partial", "done"] = "partial" if partly else "done"
        await asyncio.to_thread(
            self.store.finish,
            self.run,
            status,
            roles=self.workers,
            result=result,
        )
        return status

    @cached_property
    def cells(self) -> AnswerRows:
        """What turns answers into lines for the store."""
        return AnswerRows(self.run)


SERVED_RUN_ID: ContextVar[str] = ContextVar("gone_on", default="")
"""Id of the run that a server's thread is of, in a server that was started again."""

IS_FORKED_THREAD: ContextVar[bool] = ContextVar("forked", default=False)
"""Whether a server's thread goes on from an earlier state of that run, which stays as it is."""

ContextType = TypeVar("ContextType", bound=Context)
ResourcesType = TypeVar("ResourcesType", bound=Resources)
_resources_by_thread: dict[str, Resources] = {}


@contextmanager
def hold_resources_of_thread(thread: str, live: Resources) -> Iterator[None]:
    """Hold the resources of a thread for its nodes."""
    _resources_by_thread[thread] = live
    try:
        yield
    finally:
        _resources_by_thread.pop(thread, None)


async def get_resources_of_thread(
    runtime: Runtime[ContextType], kind: type[ResourcesType]
) -> ResourcesType:
    """Return the resources of the node's thread.

    Raises:
        WrongUse: The graph was run by itself: nobody holds any.
    """
    live = _resources_by_thread.get(
        (runtime.execution_info and runtime.execution_info.thread_id) or ""
    )
    if live is None:
        raise WrongUse(
            "the graph was given no store, roles and conversations to work with",
            hint="run it by a command (`pollex learn --help`), by the functions of pollex, or in LangGraph Studio as "
            "langgraph.json has it; what ran, `pollex trace last` shows",
        )

    assert isinstance(live, kind), "a thread is of one graph"
    return live
