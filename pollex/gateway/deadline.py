"""The time limit of a call, in which the time that a process was stopped for (Ctrl-Z, a closed lid) doesn't count."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SLICE = 1.0
GRACE = 5.0
"""Seconds to take in what came while the process was stopped."""


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """End what is in the block with `TimeoutError` after so many seconds in which the process ran.

    Time is counted in slices, of each of which at most one counts: a reply that came meanwhile is paid, and is read.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.Handle
    async with asyncio.timeout(None) as limit:

        def tick(left: float, due: float) -> None:
            nonlocal timer
            if left <= 0 and loop.time() - due > SLICE:  # stopped, or busy for as long
                left = GRACE
            if left <= 0:
                limit.reschedule(loop.time())
                return
            length = min(left, SLICE)
            timer = loop.call_later(length, tick, left - length, loop.time() + length)

        timer = loop.call_soon(tick, seconds, loop.time())
        try:
            yield
        finally:
            timer.cancel()
