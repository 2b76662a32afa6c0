"""Group commit: one thread that commits all that has gathered while the last commit ran."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class GroupCommit(Generic[T]):
    """A thread that passes batches to `commit`, in order.

    The first failure is final, unless `goes_on`: those who wait get it, and so does everybody who comes later. A caller
    who puts more than `room` bytes ahead of the thread is held back, so memory stays bounded.

    Args:
        commit: Called in the thread with a batch, and whether somebody waits for all that was put to be readable.
        linger: Seconds that a batch may gather while nobody waits for it.
        room: Bytes that may be queued.
        goes_on: Only those whose batch failed get the failure; what comes later is tried.
    """

    def __init__(
        self,
        commit: Callable[[list[T], bool], None],
        *,
        linger: float = 0.2,
        room: int = 32 << 20,
        goes_on: bool = False,
    ) -> None:
        self._commit, self._linger, self._room, self._goes_on = commit, linger, room, goes_on
        self._changed = threading.Condition()
        self._items: list[T] = []
        self._waiting: list[Future[None] | asyncio.Future[None]] = []
        self._queued, self._settling, self._closing = 0, False, False
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="pollex-store", daemon=True)
        self._thread.start()

    def put(
        self,
        items: Sequence[T],
        size: int = 0,
        *,
        wait: Future[None] | asyncio.Future[None] | None = None,
        settle: bool = False,
    ) -> None:
        """Queue items.

        Args:
            size: Their bytes, roughly.
            wait: Resolved when they are committed.
            settle: Whether `wait` is for all that was put to be readable.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._queued < self._room or self.failure is not None)
            if self.failure is not None:
                raise self.failure
            if self._closing:
                raise RuntimeError("the store is closed")
            self._items.extend(items)
            self._queued += size
            self._settling |= settle
            self._waiting += [] if wait is None else [wait]
            self._changed.notify_all()

    async def write(self, items: Sequence[T], size: int = 0, *, settle: bool = False) -> None:
        """Queue items and return when they, and all that was queued before, are committed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.put(items, size, wait=done, settle=settle)
        await done

    def flush(self) -> None:
        """Block until all that was put is readable."""
        done: Future[None] = Future()
        self.put((), wait=done, settle=True)
        done.result()

    def close(self) -> None:
        """Commit what is queued and end the thread. Raises nothing: `failure` tells."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended and self.failure is None:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._waiting or self._closing)
                self._changed.wait_for(
                    lambda: self._waiting or self._closing or self._queued >= self._room // 2, self._linger
                )
                items, waiting, settle, ended = self._items, self._waiting, self._settling, self._closing
                self._items, self._waiting, self._queued, self._settling = [], [], 0, False
                self._changed.notify_all()
            try:
                self._commit(items, settle)
            except Exception as failure:  # whatever it is, those who wait must hear of it
                with self._changed:
                    self.failure = failure
                    waiting += [] if self._goes_on else self._waiting
                    self._changed.notify_all()
            self._wake(waiting)
            if self._goes_on:
                self.failure = None

    def _wake(self, waiting: Sequence[Future[None] | asyncio.Future[None]]) -> None:
        """Wake all who wait: one call into each event loop, however many wait in it."""
        loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
        for future in waiting:
            if isinstance(future, asyncio.Future):
                loops[future.get_loop()].append(future)
            else:
                _resolve([future], self.failure)
        for loop, futures in loops.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_resolve, futures, self.failure)


def _resolve(futures: Sequence[Future[None] | asyncio.Future[None]], failure: Exception | None) -> None:
    for future in futures:
        if future.done():  # its task was cancelled
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)
