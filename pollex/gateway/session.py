"""What a gateway has open in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field

from pollex.gateway.inflight import SharedCall
from pollex.gateway.limiter import Limiter
from pollex.gateway.outage import Outage
from pollex.gateway.outcomes import Outcome
from pollex.gateway.transport import Wire


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
