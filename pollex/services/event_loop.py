"""Coroutines run from synchronous code, also inside a running event loop."""

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

COLLECTED_AFTER = 50_000
"""Objects made and not freed, before young ones are looked at."""

LAST = 60.0
"""Seconds that a canceled coroutine has for calls that are out."""


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, also inside a running event loop (Jupyter).

    An interrupt cancels it; calls that are out are still awaited.
    """
    if running_loop() is None:
        return asyncio.run(work)
    background = Background()
    try:
        return background.complete(work)
    finally:
        background.stop()


class Background:
    """An event loop in its own thread, for callers in any thread or loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="pollex", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its result; interrupts cancel it."""
        begun: list[asyncio.Task[Any] | None] = []
        stopped, ended = threading.Event(), threading.Event()

        async def noted() -> T:
            begun.append(asyncio.current_task())
            try:
                if stopped.is_set():  # interrupted before it began
                    work.close()
                    raise asyncio.CancelledError
                return await work
            finally:
                ended.set()

        try:
            return self.submit(noted()).result()
        except KeyboardInterrupt:  # also between the submission and the wait
            stopped.set()
            if begun and begun[0] is not None:
                self._loop.call_soon_threadsafe(begun[0].cancel)
                ended.wait(LAST)
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.current_thread() is not self._thread:
                self._thread.join()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop of this thread; None where none runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect cyclic garbage less often, without the objects of imported packages.

    A run makes few cycles and many objects; collecting after every 700 of them takes a quarter of its processor time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
