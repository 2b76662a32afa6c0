"""The limit of concurrent calls, and their rate."""

import asyncio
from collections import deque
from collections.abc import Callable

FIRST_CALLS = 32
"""Calls sent before the first reply; from there every reply that is no 429 makes room for one more."""

_CUT = 0.7
_KEPT_RATE = 0.95
_HOLD = 10.0
_GROWTH = 1.1
_NO_PACE = 0.001


class Limiter:
    """Slots for calls, given in the order of asking.

    Starts with a few slots and doubles them every round trip up to `ceiling`. A 429 opens an *episode*: nothing is sent
    until the endpoint's wait is over, the slots are cut once, however many calls of the same burst come back with 429,
    and calls are then spaced at the rate at which the endpoint accepted them since the last episode, since with quick
    replies no number of slots alone keeps a rate. After ten seconds without a 429 the rate grows by a tenth a second,
    until spacing is too short to matter; slots grow by one a round.

    Args:
        least: Seconds between two calls at least, for a limit that the user sets.

    For one event loop. Times are those of the loop's monotonic clock, in seconds.
    """

    def __init__(self, ceiling: int, least: float = 0.0) -> None:
        self._ceiling = ceiling
        self._least = least
        self._limit = float(min(ceiling, FIRST_CALLS))
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed: Callable[[], Exception] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ready_at = self._loop.time()
        self._resume_at = self._ready_at
        self._spacing = 0.0
        self._episode_at: float | None = None
        self._counted_from = self._ready_at
        self._accepted = 0
        self._grow_at = self._ready_at
        self._before_outage: float | None = None
        self.accepted_at = self._ready_at

    @property
    def limit(self) -> int:
        """Slots there are now."""
        return int(self._limit)

    @property
    def out(self) -> int:
        """Slots taken now."""
        return self._out

    async def acquire(self, *, first: bool = False) -> float:
        """Take a slot, waiting for it, and tells when it was given.

        Args:
            first: Ahead of all who wait, for a call that had its turn already.

        Raises:
            Exception: What `close` was given.
        """
        if not self._waiting and self._closed is None and self._may_go():
            self._take()
            return self._loop.time()
        while True:
            await self._turn(first=first)
            now = self._loop.time()
            if now >= self._resume_at:
                return now
            first = True  # a 429 came in between
            self._out -= 1

    def release(self) -> None:
        """Give a slot back."""
        self._out -= 1
        self._pump()

    def accept(self) -> None:
        """Note a reply that was no 429."""
        now = self.accepted_at = self._loop.time()
        self._accepted += 1
        if self._before_outage is not None:
            self._limit, self._before_outage = self._before_outage, None
        growth = 1.0 if self._episode_at is None else 1.0 / self._limit
        self._limit = min(float(self._ceiling), self._limit + growth)
        if self._spacing and now >= self._grow_at:
            self._grow_at = now + 1
            self._spacing = 0.0 if self._spacing < _NO_PACE else self._spacing / _GROWTH

    def reject(self, given_at: float, wait: float) -> None:
        """Record a 429 to a call with a slot since `given_at`; pause for `wait` seconds."""
        now = self._loop.time()
        self._resume_at = max(self._resume_at, now + wait)
        self._ready_at = max(self._ready_at, self._resume_at)
        if self._episode_at is None or given_at > self._episode_at:
            self._begin_episode(now, (given_at - self._counted_from) + wait)

    def hold(self, wait: float) -> None:
        """Pause for `wait` seconds, then send single calls until one is accepted."""
        self._resume_at = max(self._resume_at, self._loop.time() + wait)
        self._ready_at = max(self._ready_at, self._resume_at)
        self._before_outage = self._before_outage or self._limit
        self._limit = 1.0

    def close(self, error: Callable[[], Exception]) -> None:
        """Give out no more slots: who waits or asks gets `error()`."""
        self._closed = error
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error())

    async def _turn(self, *, first: bool) -> None:
        if self._closed is not None:
            raise self._closed()
        turn: asyncio.Future[None] = self._loop.create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        self._pump()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release()
            raise

    def _begin_episode(self, now: float, spent: float) -> None:
        """Adapt limit and rate to a 429.

        Args:
            spent: Seconds in which what was accepted was sent, the wait now asked for included: replies take their
                time on the way, which says nothing about the rate.
        """
        rate = max(self._accepted, 1) / max(spent, 0.001)
        self._spacing = 1.0 / (rate * _KEPT_RATE)
        self._limit = max(1.0, self._limit * _CUT)
        self._episode_at, self._grow_at = now, now + _HOLD
        self._counted_from, self._accepted = self._resume_at, 0

    def _may_go(self) -> bool:
        return self._out < int(self._limit) and self._loop.time() >= self._ready_at

    def _take(self) -> None:
        self._out += 1
        if spacing := max(self._spacing, self._least):
            self._ready_at = self._loop.time() + spacing

    def _pump(self, *, rung: bool = False) -> None:
        self._timer = None if rung else self._timer
        while self._waiting and self._may_go():
            turn = self._waiting.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)
        if self._waiting and self._out < int(self._limit) and self._timer is None:
            self._timer = self._loop.call_at(self._ready_at, lambda: self._pump(rung=True))
