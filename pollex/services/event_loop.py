"""Runs what is asynchronous for callers that are not, wherever they stand."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

COLLECTED_AFTER = 50_000
"""Objects made and not freed, before young ones are looked at."""

HEARING = 0.5
"""Seconds after which an interrupt is heard that came just before a wait: Python wakes nobody for it."""


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, also where an event loop is running already, as in a notebook.

    An interrupt cancels it, there too: what is out is still awaited, and nothing more is begun.
    """
    if running_loop() is None:
        return asyncio.run(work)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    stopped = threading.Event()

    async def stoppable() -> T:
        task = asyncio.current_task()
        assert task is not None, "asyncio.run makes one"
        begun.append((task.get_loop(), task))
        if stopped.is_set():  # between the interrupt and here
            work.close()
            raise asyncio.CancelledError
        return await work

    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            # A thread that is interrupted while it starts is not awaited at the end: let it start with nothing to do.
            thread.submit(int).result()
            ended = thread.submit(asyncio.run, stoppable())
            while not wait([ended], timeout=HEARING).done:
                pass
            return ended.result()
        except KeyboardInterrupt:
            stopped.set()
            if not begun:
                work.close()
            for loop, task in begun:
                with suppress(RuntimeError):  # it has ended meanwhile, and its loop is closed
                    loop.call_soon_threadsafe(task.cancel)
            raise


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of this thread; None where none runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextmanager
def few_collections() -> Iterator[None]:
    """Has Python look for cyclic garbage less often, and not among the million objects of imported packages.

    A run makes few cycles and many objects; looking after every 700 of them takes a quarter of its processor time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
