"""What a gateway has open in one event loop: connections, slots, and calls that all who ask the same share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field

from pollex.gateway.calls import Outcome
from pollex.gateway.limiter import Limiter
from pollex.gateway.retries import Outage
from pollex.gateway.transport import Wire


class SharedCall:
    """Shared work on one key.

    It has no owner: if an asker is canceled, a sent call is still received and recorded, while an unsent one is
    dropped.

    Attributes:
        sent: Whether a call was sent, so that ending the work would lose a paid reply.
        abandoned: Whether the work was ended before it had a result.
    """

    def __init__(self, work: Callable[[SharedCall], Coroutine[None, None, Outcome]]) -> None:
        self.sent = False
        self.abandoned = False
        self._askers = 0
        self.task = asyncio.ensure_future(work(self))
        self.task.add_done_callback(_retrieve)

    async def wait(self) -> Outcome:
        """Wait for the outcome."""
        self._askers += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._askers -= 1
            if not self._askers:
                self.abandon()

    def abandon(self) -> None:
        """End the work, unless a call is out."""
        if not self.sent and not self.task.done():
            self.abandoned = True
            self.task.cancel()


def _retrieve(task: asyncio.Task[Outcome]) -> None:
    """Mark an error as retrieved, in case all askers were canceled."""
    if not task.cancelled():
        task.exception()


@dataclass(slots=True)
class Session:
    """Connections, slots and calls that are out."""

    wire: Wire
    limiter: Limiter
    outage: Outage
    flights: dict[str, SharedCall] = field(default_factory=dict)
    open: AsyncGenerator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.open = self._open()

    async def _open(self) -> AsyncGenerator[None]:
        """Keep connections open until the generator is closed.

        `asyncio.run` closes generators without an owner when its loop ends.
        """
        try:
            yield
        finally:
            await self.wire.close()

    def start(self, key: str, work: Callable[[SharedCall], Coroutine[None, None, Outcome]]) -> SharedCall:
        """Return a new flight, to be found under `key` until it is over."""
        flight = self.flights[key] = SharedCall(work)
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: str, flight: SharedCall) -> None:
        if self.flights.get(key) is flight:
            del self.flights[key]

    async def drain(self, seconds: float) -> None:
        """End what was not sent, and waits up to `seconds` for what was."""
        flights = list(self.flights.values())
        for flight in flights:
            flight.abandon()
        if not flights:
            return
        _, late = await asyncio.wait([flight.task for flight in flights], timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
