"""The limiter, on a clock that jumps over all waiting."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import pairwise
from typing import Any

import pytest

from pollex.errors import Interrupted
from pollex.gateway.budget import Limits
from pollex.gateway.limiter import INITIAL_CALL_SLOTS, RateLimiter


class _Jumping(selectors.SelectSelector):
    """Instead of waiting, moves the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


def on_a_jumping_clock(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def simulate(**given: Any) -> None:
        selector = _Jumping()
        loop = asyncio.SelectorEventLoop(selector)
        loop.time = lambda: selector.now  # type: ignore[method-assign]
        try:
            loop.run_until_complete(asyncio.wait_for(test(**given), 100_000))
        finally:
            loop.close()

    return simulate


class Endpoint:
    """Accepts so many calls in any second, and answers after a while.

    Attributes:
        asks_to_wait: Seconds that its 429 names; None for a plain one.
        storm: So many calls are served before it begins, and so many seconds it lasts.
    """

    def __init__(
        self,
        per_second: float,
        latency: float = 0.2,
        *,
        asks_to_wait: float | None = 1.0,
        storm: tuple[int, float] = (1 << 30, 0.0),
    ) -> None:
        self.per_second = per_second
        self._latency = latency
        self.asks_to_wait = asks_to_wait
        self.storm = storm
        self._storm_until: float | None = None
        self._moments: deque[float] = deque()
        self.accepted: list[float] = []
        self.rejected: list[float] = []
        self.out = self.most_out = 0

    async def answer(self, limiter: RateLimiter) -> bool:
        loop = asyncio.get_running_loop()
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        now = loop.time()
        while self._moments and self._moments[0] <= now - 1.0:
            self._moments.popleft()
        if self._storm_until is None and len(self.accepted) >= self.storm[0]:
            self._storm_until = now + self.storm[1]
        stormy = self._storm_until is not None and now < self._storm_until
        fits = not stormy and len(self._moments) < self.per_second
        (self.accepted if fits else self.rejected).append(now)
        if fits:
            self._moments.append(now)
        await asyncio.sleep(self._latency)
        self.out -= 1
        return fits


async def ask(limiter: RateLimiter, endpoint: Endpoint) -> None:
    attempts = 0
    while True:
        given_at = await limiter.acquire(first=attempts > 0)
        attempts += 1
        try:
            if await endpoint.answer(limiter):
                limiter.accept(given_at)
                return
            limiter.reject(given_at, endpoint.asks_to_wait)
        finally:
            limiter.release(given_at)


@on_a_jumping_clock
async def test_slots_start_low_double_each_round_and_stop_at_the_ceiling() -> None:
    limiter = RateLimiter(100)
    endpoint = Endpoint(10_000)
    asking = asyncio.gather(*(ask(limiter, endpoint) for _ in range(1000)))
    seen = []
    for _ in range(4):
        await asyncio.sleep(0.1)
        seen.append(limiter.out)
        await asyncio.sleep(0.1)
    await asking
    assert seen == [INITIAL_CALL_SLOTS, 2 * INITIAL_CALL_SLOTS, 100, 100]
    assert endpoint.most_out == 100
    assert limiter.out == 0


@on_a_jumping_clock
async def test_a_burst_of_429_cuts_the_slots_once() -> None:
    limiter = RateLimiter(10)
    given = [await limiter.acquire() for _ in range(10)]
    for given_at in given:
        limiter.reject(given_at, 1.0)
    assert limiter.limit == 7


@pytest.mark.parametrize("latency", [0.0, 0.2, 3.0])
@on_a_jumping_clock
async def test_a_rate_is_found_and_kept(latency: float) -> None:
    limiter = RateLimiter(200)
    endpoint = Endpoint(20, latency)
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(400)))
    assert len(endpoint.accepted) == 400
    assert len(endpoint.rejected) < 200
    assert endpoint.accepted[-1] < 2.5 * 400 / 20 + 5 * latency


@on_a_jumping_clock
async def test_nothing_is_sent_during_the_wait_that_was_asked_for() -> None:
    limiter = RateLimiter(50)
    endpoint = Endpoint(10, latency=0.01)
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(60)))
    sent = sorted(endpoint.accepted + endpoint.rejected)
    for rejected in endpoint.rejected:
        told = rejected + 0.01
        assert not [moment for moment in sent if told < moment < told + 1.0 - 1e-9]


@on_a_jumping_clock
async def test_the_pace_recovers_when_the_endpoint_allows_more_again() -> None:
    limiter = RateLimiter(64)
    endpoint = Endpoint(20)
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(200)))
    endpoint.per_second = 10_000
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(6_000)))
    took = asyncio.get_running_loop().time() - began
    assert limiter.limit == 64
    assert took < 6_000 / 64 * 0.2 + 120, "never faster than it was throttled to"


@pytest.mark.parametrize("asks_to_wait", [None, 1.0])
@pytest.mark.parametrize("lasts", [10.0, 60.0])
@pytest.mark.parametrize(("calls", "latency"), [(36, 0.0), (36, 0.2), (36, 4.0), (3_000, 0.2)])
@on_a_jumping_clock
async def test_after_a_storm_one_call_feels_its_way_and_the_rest_follow(
    calls: int, latency: float, lasts: float, asks_to_wait: float | None
) -> None:
    ideal = Endpoint(1_000_000, latency)
    await asyncio.gather(
        *(ask(limiter, ideal) for limiter in [RateLimiter(64)] for _ in range(calls))
    )
    took = asyncio.get_running_loop().time()
    endpoint = Endpoint(1_000_000, latency, asks_to_wait=asks_to_wait, storm=(12, lasts))
    limiter = RateLimiter(64)
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(calls)))
    over = asyncio.get_running_loop().time() - 2 * took
    assert over <= 2 * lasts + latency
    assert len(endpoint.rejected) < INITIAL_CALL_SLOTS + 2 * lasts, "one at a time"


@on_a_jumping_clock
async def test_a_plain_429_that_comes_back_is_a_rate_that_is_kept() -> None:
    limiter = RateLimiter(64)
    endpoint = Endpoint(20, asks_to_wait=None)
    await asyncio.gather(*(ask(limiter, endpoint) for _ in range(400)))
    assert len(endpoint.rejected) < 400
    assert asyncio.get_running_loop().time() < 2.5 * 400 / 20


@on_a_jumping_clock
async def test_who_had_a_turn_goes_before_who_waits() -> None:
    limiter = RateLimiter(1)
    order = list[str]()
    await limiter.acquire()

    async def wait(name: str, *, first: bool) -> None:
        await limiter.acquire(first=first)
        order.append(name)
        limiter.release()

    waiting = [
        asyncio.ensure_future(wait(name, first=name == "retry")) for name in ("one", "two", "retry")
    ]
    await asyncio.sleep(0)
    limiter.release()
    await asyncio.gather(*waiting)
    assert order == ["retry", "one", "two"]


@on_a_jumping_clock
async def test_who_stops_waiting_leaves_no_slot_taken() -> None:
    limiter = RateLimiter(1)
    await limiter.acquire()
    waiting = [asyncio.ensure_future(limiter.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    limiter.release()  # gives the slot to the second at the moment at which it is cancelled
    waiting[1].cancel()
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    await waiting[2]
    assert limiter.out == 1


@on_a_jumping_clock
async def test_closing_tells_everybody_who_waits_or_asks() -> None:
    limiter = RateLimiter(1)
    await limiter.acquire()
    waiting = [asyncio.ensure_future(limiter.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    limiter.close(lambda: Interrupted("stopped"))
    assert {type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)} == {
        Interrupted
    }
    with pytest.raises(Interrupted):
        await limiter.acquire()


@on_a_jumping_clock
async def test_calls_are_apart_as_a_limit_of_calls_a_minute_asks() -> None:
    limits = Limits(calls_per_minute=600)
    limiter = RateLimiter(10, limits.spacing)
    given = sorted(await asyncio.gather(*(limiter.acquire() for _ in range(5))))
    assert min(later - earlier for earlier, later in pairwise(given)) >= 0.1 - 1e-6
    assert limits.shared(3).calls_per_minute == 200  # together no more than one alone
