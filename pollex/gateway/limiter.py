"""The limit of concurrent calls, and their rate."""

import asyncio
import random
from collections import deque
from collections.abc import Callable

INITIAL_CALL_SLOTS = 32
"""Calls sent before the first reply; from there every reply that is no 429 makes room for one more."""

_SLOT_CUT_FACTOR = 0.7
_SHARE_OF_ACCEPTED_RATE = 0.95
_SECONDS_BEFORE_GROWTH = 10.0
_RATE_GROWTH_FACTOR = 1.1
_MIN_SPACING_SECONDS = 0.001
_MIN_ASKED_WAIT_SECONDS = 0.1
_MAX_REFUSAL_PAUSE_SECONDS = 15.0
_PAUSE_PER_EPISODE_LENGTH = 0.5
"""A pause between two feelers, as a share of the time that the storm has lasted."""
_MIN_STORM_SECONDS = 3.0
"""Seconds for which nothing is accepted in a storm; in less, a limit of calls a second lets some through."""
_MAX_SECONDS_BETWEEN_LINKED_STORMS = 60.0
"""Seconds after a storm in which another one is of the same cause: too high a rate."""


class RateLimiter:
    """Slots for calls, given in the order of asking.

    Starts with a few slots and doubles them every round trip up to `ceiling`. A 429 opens an
    *episode*: nothing is sent until the endpoint's wait is over, the slots are cut once, however
    many calls of the same burst come back with 429, and calls are then spaced at the rate at which
    the endpoint accepted them since the last episode, since with quick replies no number of slots
    alone keeps a rate. After ten seconds without a 429 the rate grows by a tenth a second, until
    spacing is too short to matter; slots grow by one a round.

    Where the endpoint names no wait, or goes on refusing after it, one call *feels* the way, after
    pauses that grow with the time for which nothing was accepted; when it is served the rest
    follow. An endpoint that refuses even single calls for seconds is in a storm that no rate of
    ours explains: after it slots and rate are what they were, unless another follows soon.

    Args:
        least: Seconds between two calls at least, for a limit that the user sets.
        backoff: Seconds, about, of the first pause where the endpoint names none.

    For one event loop. Times are those of the loop's monotonic clock, in seconds.
    """

    def __init__(self, ceiling: int, least: float = 0.0, *, backoff: float = 0.5) -> None:
        self._ceiling = ceiling
        self._least = least
        self._backoff = backoff
        self._limit = float(min(ceiling, INITIAL_CALL_SLOTS))
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed: Callable[[], Exception] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ready_at = self._loop.time()
        self._resume_at = self._ready_at
        self._spacing = 0.0
        self._episode_at: float | None = None
        self._throttled = False
        self._counted_from = self._ready_at
        self._accepted = 0
        self._served = True
        self._grow_at = self._ready_at
        self._before_outage: float | None = None
        self._feeling = False
        self._feeler_at: float | None = None
        self._refused_feelers = 0
        self._before_episode = (self._limit, self._spacing, self._throttled)
        self._accepted_in = (0, self._ready_at)
        self._storm_ended_at: float | None = None
        self._jitter = random.Random()  # only spreads pauses; enters no result
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
        # a free slot, and nobody before
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

    def release(self, given_at: float | None = None) -> None:
        """Give a slot back that was held since `given_at`."""
        self._out -= 1
        if self._feeler_at is not None and (given_at is None or given_at >= self._feeler_at):
            self._feeler_at = None
        self._pump()

    def accept(self, given_at: float | None = None, *, grows: bool = True) -> None:
        """Note a reply that was no 429, to a call with a slot since `given_at`.

        Args:
            grows: Whether it makes room for one more call.
        """
        # after an outage the slots are what they were before
        now = self.accepted_at = self._loop.time()
        self._accepted += 1
        if self._before_outage is not None:
            self._limit = self._before_outage
            self._before_outage = None

        if given_at is None or given_at >= self._resume_at:
            self._served = True
            self._end_feeling(now)

        # slots double each round until a first 429, then grow by one
        if grows:
            growth = 1.0 / self._limit if self._throttled else 1.0
            self._limit = min(float(self._ceiling), self._limit + growth)
        if self._spacing and now >= self._grow_at:
            self._grow_at = now + 1
            self._spacing = (
                0.0 if self._spacing < _MIN_SPACING_SECONDS else self._spacing / _RATE_GROWTH_FACTOR
            )

    def reject(self, given_at: float, asked_wait: float | None = None) -> None:
        """Record a 429 to a call with a slot since `given_at`; pause.

        Args:
            asked_wait: Seconds for which the endpoint asks to wait; None where it doesn't say.
        """
        now = self._loop.time()
        # a wait that the endpoint names is taken at its word
        named = asked_wait is not None and asked_wait >= _MIN_ASKED_WAIT_SECONDS
        if given_at < self._resume_at:  # of the same burst
            self._pause_until(now + asked_wait if named and asked_wait is not None else now)
            return

        # the first 429 of an episode cuts slots and rate; later ones prolong the pause
        if self._served or self._episode_at is None:
            began = now
        else:
            began = self._episode_at

        if named and asked_wait is not None:
            pause = asked_wait
        else:
            pause = self._own_pause(now - began)

        if self._served:
            self._feeling = not named
            self._refused_feelers = 0
            self._begin_episode(now, (given_at - self._counted_from) + pause)
        else:
            self._feeling = True
            self._refused_feelers += 1

        self._served = False
        self._pause_until(now + pause)
        self._counted_from = self._resume_at

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

        # in the order of asking, those who had their turn already first
        turn: asyncio.Future[None] = self._loop.create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        self._pump()

        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release()
            raise

    def _pause_until(self, moment: float) -> None:
        self._resume_at = max(self._resume_at, moment)
        self._ready_at = max(self._ready_at, self._resume_at)

    def _own_pause(self, lasts: float) -> float:
        """Return how long to wait where nobody says: short at first, then a share of the time that it has lasted."""
        longest = min(
            _MAX_REFUSAL_PAUSE_SECONDS, max(self._backoff, _PAUSE_PER_EPISODE_LENGTH * lasts)
        )
        return longest * self._jitter.uniform(0.5, 1.0)

    def _begin_episode(self, now: float, spent: float) -> None:
        """Adapt limit and rate to a 429.

        Args:
            spent: Seconds in which what was accepted was sent, the pause included: replies take
                their time on the way, which says nothing about the rate.
        """
        self._before_episode = (self._limit, self._spacing, self._throttled)
        self._accepted_in = (self._accepted, self._counted_from)
        self._spacing = self._pace(self._accepted, spent)
        self._limit = max(1.0, self._limit * _SLOT_CUT_FACTOR)
        self._episode_at = now
        self._grow_at = now + _SECONDS_BEFORE_GROWTH
        self._throttled = True
        self._accepted = 0

    def _end_feeling(self, now: float) -> None:
        """Let the rest follow the call that was served."""
        self._feeling = False
        self._feeler_at = None
        # a storm: single calls were refused for seconds
        refused = self._refused_feelers
        self._refused_feelers = 0
        if not refused or now - (self._episode_at or now) < _MIN_STORM_SECONDS:
            return

        # two storms in a row say that the rate is too high after all
        again = (
            self._storm_ended_at is not None
            and now - self._storm_ended_at < _MAX_SECONDS_BETWEEN_LINKED_STORMS
        )
        self._storm_ended_at = now
        if again:
            accepted, since = self._accepted_in
            self._spacing = self._pace(accepted, now - since)
        else:
            self._limit, self._spacing, self._throttled = self._before_episode
            self._ready_at = now

    @staticmethod
    def _pace(accepted: int, seconds: float) -> float:
        """Return the seconds between two calls at which so many are accepted in that time."""
        return max(seconds, 0.001) / (max(accepted, 1) * _SHARE_OF_ACCEPTED_RATE)

    def _may_go(self) -> bool:
        if self._feeling:
            return self._feeler_at is None and self._loop.time() >= self._ready_at
        return self._out < int(self._limit) and self._loop.time() >= self._ready_at

    def _take(self) -> None:
        self._out += 1
        if self._feeling:
            self._feeler_at = self._loop.time()
        if spacing := max(self._spacing, self._least):
            self._ready_at = self._loop.time() + spacing

    def _pump(self, *, rung: bool = False) -> None:
        self._timer = None if rung else self._timer
        while self._waiting and self._may_go():
            turn = self._waiting.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

        # who waits for the pace is woken by a timer
        if self._feeling:
            free = self._feeler_at is None
        else:
            free = self._out < int(self._limit)

        if self._waiting and free and self._timer is None:
            self._timer = self._loop.call_at(
                self._ready_at,
                lambda: self._pump(rung=True),
            )
