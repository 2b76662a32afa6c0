"""The runtime context of graph nodes: roles, store, tracer, progress.

It reaches nodes by LangGraph's runtime, never by state.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic_core.core_schema import CoreSchema, any_schema
from typing_extensions import TypedDict  # LangGraph Studio can't show the standard one before Python 3.12

from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.store.rows import AnswerLines
from pollex.store.spans import Tracer
from pollex.store.store import Store

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


BATCH = 1024
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
    """The runtime context that every graph's nodes share.

    Attributes:
        secrets: Keys that must not be written anywhere.
        batch: Conversations in flight at once.
        semaphore: Limits how many questions are asked at once; others wait before their prompts are written.
    """

    store: Store
    run: str
    tracer: Tracer
    secrets: Collection[str] = ()
    progress: Progress = field(default_factory=NullProgress)
    batch: int = BATCH
    semaphore: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BATCH))

    @cached_property
    def lines(self) -> AnswerLines:
        """What turns answers into lines for the store."""
        return AnswerLines(self.run)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Live objects have no schema; LangGraph Studio asks for one, and fails without this answer."""
        return any_schema()


C = TypeVar("C", bound=Context)


def context_of(runtime: Runtime[C]) -> C:
    """Return the context of a graph's first node.

    Raises:
        WrongUse: The graph was run by itself, as a button of LangGraph Studio does.
    """
    if runtime.context is None:
        raise WrongUse(
            "the graph was given no store, roles and conversations to work with",
            remedy="run it by a command (`pollex learn --help`) or by the functions of pollex; what ran, "
            "`pollex trace last` shows",
        )
    return runtime.context


def steps_needed(items: int, batch: int) -> int:
    """Return the recursion limit for items in batches: two steps a batch, and a margin."""
    return 2 * (items // batch + 1) + 20


class BatchState(TypedDict, total=False):
    """Ids only.

    Attributes:
        begun: How many of the run's items were begun.
        batch: Those that are being worked on.
    """

    begun: int
    batch: list[str]


class Item(TypedDict):
    """One item of a batch: the id of a conversation, a question or a case."""

    id: str


@dataclass(frozen=True, kw_only=True)
class BatchContext(Context):
    """The runtime context of graphs that work in batches of items.

    Attributes:
        pending: Ids of the items that are to be worked on, in order.
        ended: How many tasks have ended, by item of the batch.
    """

    pending: Sequence[str]
    ended: Counter[str] = field(default_factory=Counter)

    def next_batch(self, state: BatchState) -> BatchState:
        """Return the next batch of pending items; an empty one when none is left."""
        begun = state.get("begun", 0)
        batch = list(self.pending[begun : begun + self.batch])
        return {"begun": begun + len(batch), "batch": batch}

    def end(self, item: str, stage: str, tasks: int = 1) -> None:
        """Report an item as done once all its tasks have ended: a batch of a slow model takes hours."""
        self.ended[item] += 1
        if self.ended[item] == tasks:
            self.progress.advance(stage)

    async def close(self, batch: Sequence[str], stage: str) -> None:
        """Commit a batch, which bounds the cost of a kill, and report those items as done that `end` didn't."""
        if left := [item for item in batch if not self.ended[item]]:
            self.progress.advance(stage, len(left))
        self.ended.clear()
        await self.store.settle()
