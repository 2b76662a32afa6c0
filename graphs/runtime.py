"""What nodes work with: roles, store, tracer, progress. It reaches them by the runtime context, never by state."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic_core.core_schema import CoreSchema, any_schema

from pollex.agents.roles import Agent, Deduplicator, Extractor, Judge, Summarizer, Updater
from pollex.conversations.model import Conversation
from pollex.errors import WrongUse
from pollex.store.spans import Tracer
from pollex.store.store import Store

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

WAVE = 1024
"""Conversations in flight at once. How many calls are, the gateway's limiter decides; this bounds memory."""


@dataclass(frozen=True)
class Roles:
    """Who does the work.

    Attributes:
        updater: Who writes the rubrics in place of summariser and deduplicator, where SPUR is learnt with.
    """

    extractor: Extractor
    summarizer: Summarizer
    deduplicator: Deduplicator
    judge: Judge
    updater: Updater | None = None

    @property
    def names(self) -> dict[str, str]:
        """Who does what, for the rubric set and for people."""
        return {role: agent.name for role, agent in self._working.items()}

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of each role, as it was made: a judge that studies changes its own."""
        return {role: agent.fingerprint for role, agent in self._working.items()}

    @property
    def _working(self) -> dict[str, Agent]:
        if self.updater is not None:
            return {"extractor": self.extractor, "updater": self.updater, "judge": self.judge}
        return {
            "extractor": self.extractor,
            "summarizer": self.summarizer,
            "deduplicator": self.deduplicator,
            "judge": self.judge,
        }


class Progress(Protocol):
    """Where a run tells how far it is."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """A stage begins; `done` of its items were done before a resume."""

    def advance(self, stage: str, by: int = 1) -> None:
        """Items of a stage are done."""


class Silent:
    """Progress that nobody watches."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Says nothing."""

    def advance(self, stage: str, by: int = 1) -> None:
        """Says nothing."""


class Shelf:
    """Conversations by id, wherever they lie."""

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
    """What every graph's nodes find in `runtime.context`.

    Attributes:
        secrets: Keys that must not be written anywhere.
        wave: Conversations in flight at once.
        gate: Lets so many questions be asked at once; the rest of the wave waits without a prompt written.
    """

    store: Store
    run: str
    tracer: Tracer
    secrets: Collection[str] = ()
    progress: Progress = field(default_factory=Silent)
    wave: int = WAVE
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WAVE))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Live objects have no schema; LangGraph Studio asks for one, and fails without this answer."""
        return any_schema()


C = TypeVar("C", bound=Context)


def context_of(runtime: Runtime[C]) -> C:
    """What a graph's first node works with.

    Raises:
        WrongUse: The graph was run by itself, as a button of LangGraph Studio does.
    """
    if runtime.context is None:
        raise WrongUse(
            "the graph was given no store, roles and conversations to work with",
            remedy="run it by a command (pollex learn --help) or by the functions of graphs/runs.py; what ran, "
            "`pollex trace last` shows",
        )
    return runtime.context


def waves_needed(items: int, wave: int) -> int:
    """A recursion limit for a loop over waves of items: two steps a wave, and room for the other nodes."""
    return 2 * (items // wave + 1) + 20
