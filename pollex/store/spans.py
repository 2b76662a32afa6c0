"""Spans of a run: every graph, node, role call and model call, without contents.

    async with tracer.span("judge", kind="role", item=conversation.id, inputs=rubric_ids) as span:
        answers = await judge.judge(conversation, questions)
        span.outputs(answer.question_id for answer in answers)

A span lies inside the one that was open where it was opened; tasks inherit that from whoever made
them.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from pollex.gateway.redaction import redact_secrets
from pollex.store.store import Store
from pollex.store.tables import SpanRow, format_current_time

SpanKind = Literal["graph", "node", "role", "call"]

ERROR_TEXT_OF_CANCELLED_SPAN = "cancelled"
"""The end of a span that an interrupt cut short: no error, for a resume does its work."""

MAX_ERROR_CHARS = 2000

_OPEN_SPAN_ID: ContextVar[str | None] = ContextVar("open_span", default=None)


@dataclass
class NodeSpanCounts:
    """Counts of one name's spans: ended, open and failed, with total milliseconds."""

    n: int = 0
    active: int = 0
    ms: float = 0.0
    errors: int = 0


class Tracer:
    """Writes the spans of one run.

    Attributes:
        nodes: Counts of this tracer's spans by name; model calls are counted elsewhere.
        errors: Name, item and text of the last ten errors.

    Args:
        run: Id of the run.
        secrets_known: Keys that must not be written, whatever text they turn up in.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        secrets_known: Collection[str] = (),
    ) -> None:
        self._store = store
        self.run = run
        self._secrets = tuple(secrets_known)
        # A run that is resumed has a second tracer, whose ids must be others.
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self.nodes: dict[str, NodeSpanCounts] = {}
        self.errors: deque[dict[str, str]] = deque(maxlen=10)

    def span(
        self,
        name: str,
        *,
        kind: SpanKind,
        item: str = "",
        inputs: Iterable[str] = (),
    ) -> Span:
        """Make a span, to be entered.

        Args:
            item: Id of the conversation or other thing that it is about.
            inputs: References to what goes in: ids, hashes.
        """
        return Span(self, name, kind, item, tuple(inputs))

    def call(
        self,
        key: str,
        about: Mapping[str, object],
        *,
        started: str,
        ms: float,
    ) -> None:
        """Write the span of a model call that is over.

        Args:
            key: The call's key in the ledger.
            about: What the intent said: `stage` names the span, and `item` its conversation.
        """
        name = str(about.get("stage") or "call")
        item = str(about.get("item") or "")
        self._store.put(
            [
                SpanRow(
                    self.run,
                    self._next_id(),
                    _OPEN_SPAN_ID.get(),
                    name,
                    "call",
                    item,
                    (key,),
                    (),
                    started,
                    ms,
                    "",
                )
            ]
        )

    def _next_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def _begin(self, span: Span) -> None:
        self.nodes.setdefault(span.name, NodeSpanCounts()).active += 1

    def _write(
        self,
        span: Span,
        parent: str | None,
        ms: float,
        error: str,
    ) -> None:
        # texts of errors may quote keys
        error = redact_secrets(error, self._secrets)[:MAX_ERROR_CHARS]
        # what the page at work shows, without reading the store
        counted = self.nodes[span.name]
        counted.n += 1
        counted.active -= 1
        counted.ms += ms

        if error and error != ERROR_TEXT_OF_CANCELLED_SPAN:
            counted.errors += 1
            self.errors.append(
                {
                    "node": span.name,
                    "item": span.item,
                    "text": error[:200],
                }
            )

        self._store.put(
            [
                SpanRow(
                    run=self.run,
                    id=span.id,
                    parent=parent,
                    name=span.name,
                    kind=span.kind,
                    item=span.item,
                    inputs=span.inputs,
                    outputs=span.found,
                    started=span.started,
                    ms=ms,
                    error=error,
                )
            ]
        )


class Span:
    """One span; enter it with `async with`, or `with` where nothing is awaited."""

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        kind: SpanKind,
        item: str,
        inputs: tuple[str, ...],
    ) -> None:
        self.id = tracer._next_id()
        self.name = name
        self.kind = kind
        self.item = item
        self.inputs = inputs
        self.found: tuple[str, ...] = ()
        self.started = ""
        self._tracer = tracer
        self._error = ""
        self._clock = 0.0
        self._outer: Token[str | None] | None = None

    def outputs(self, references: Iterable[str]) -> None:
        """Record outputs: ids, hashes."""
        self.found = tuple(references)

    def failed(self, error: str) -> None:
        """Record an error that was not raised, such as an item's outcome."""
        self._error = error

    def __enter__(self) -> Self:
        self.started = format_current_time()
        self._clock = time.perf_counter()
        self._outer = _OPEN_SPAN_ID.set(self.id)
        self._tracer._begin(self)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ms = 1000 * (time.perf_counter() - self._clock)
        assert self._outer is not None
        _OPEN_SPAN_ID.reset(self._outer)
        if isinstance(error, asyncio.CancelledError):
            self._error = ERROR_TEXT_OF_CANCELLED_SPAN
        elif error is not None:
            self._error = f"{type(error).__name__}: {error}"

        self._tracer._write(self, _OPEN_SPAN_ID.get(), ms, self._error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)
