"""Group commit: one thread that commits all that has gathered while the last commit ran."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

T = TypeVar("T", bound="Sized")


class Sized(Protocol):
    """Anything that knows about how many bytes it takes in memory."""

    @property
    def size(self) -> int:
        """Bytes, roughly."""


class Committer(Generic[T]):
    """A thread that hands batches to `commit`, in the order in which they came.

    The first failure is final: what waits gets it, and so does everybody who comes later. A caller who puts more than
    `room` bytes ahead of the thread is held back until there is room again, so memory stays bounded.

    Args:
        commit: Makes a batch durable or raises. Runs in the thread.
        name: Of the thread.
        linger: Seconds that a batch may gather while nobody waits for it.
        room: Bytes that may be queued.
    """

    def __init__(
        self, commit: Callable[[list[T]], None], *, name: str, linger: float = 0.0, room: int = 32 << 20
    ) -> None:
        self._commit, self._linger, self._room = commit, linger, room
        self._changed = threading.Condition()
        self._items: list[T] = []
        self._waiting: list[Future[None] | asyncio.Future[None]] = []
        self._queued = 0
        self._closing = False
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, items: Sequence[T]) -> None:
        """Queues `items` and returns."""
        self._submit(items, None)

    async def write(self, items: Sequence[T]) -> None:
        """Queues `items` and returns when they, and all that was queued before them, are durable."""
        done = asyncio.get_running_loop().create_future()
        self._submit(items, done)
        await done

    def flush(self) -> None:
        """Blocks until all that was queued is durable."""
        done: Future[None] = Future()
        self._submit((), done)
        done.result()

    def close(self) -> None:
        """Commits what is queued and ends the thread. Does not raise: `failure` tells."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _submit(self, items: Sequence[T], done: Future[None] | asyncio.Future[None] | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._queued < self._room or self.failure is not None)
            if self.failure is not None:
                raise self.failure
            if self._closing:
                raise RuntimeError("the store is closed")
            self._items.extend(items)
            self._queued += sum(item.size for item in items)
            if done is not None:
                self._waiting.append(done)
            self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._gather():
            items, waiting = batch
            try:
                if items:
                    self._commit(items)
            except Exception as failure:  # whatever it is, those who wait must hear of it
                self._fail(failure)
            _settle(waiting, self.failure)
            if self.failure is not None:
                return

    def _gather(self) -> tuple[list[T], list[Future[None] | asyncio.Future[None]]] | None:
        """The next batch, with those who wait for it; None when all is done and the committer is closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._waiting or self._closing)
            if self._linger and not self._waiting:
                self._changed.wait_for(
                    lambda: self._waiting or self._closing or self._queued >= self._room // 2, self._linger
                )
            if not self._items and not self._waiting:
                return None
            items, waiting = self._items, self._waiting
            self._items, self._waiting, self._queued = [], [], 0
            self._changed.notify_all()
            return items, waiting

    def _fail(self, failure: Exception) -> None:
        with self._changed:
            self.failure = failure
            waiting, self._waiting, self._items = self._waiting, [], []
            self._changed.notify_all()
        _settle(waiting, failure)


def _settle(waiting: Sequence[Future[None] | asyncio.Future[None]], failure: Exception | None) -> None:
    """Wakes all who wait: one call into each event loop, however many wait in it."""
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
    for future in waiting:
        if isinstance(future, asyncio.Future):
            loops[future.get_loop()].append(future)
        else:
            _resolve([future], failure)
    for loop, futures in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, futures, failure)


def _resolve(futures: Sequence[Future[None] | asyncio.Future[None]], failure: Exception | None) -> None:
    for future in futures:
        if future.done():  # its task was cancelled
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)
