"""A provider that answers 429 to most of what comes."""

import pytest
from gateway_asking import ask_all, gateway, question
from protocol_server import ProtocolServer

from pollex.gateway.calls import CompletedReply
from pollex.gateway.limiter import INITIAL_CALL_SLOTS


@pytest.mark.nightly
async def test_a_storm_of_429_loses_nothing_and_costs_half_as_many_calls_again() -> None:
    script = [{"do": "rate", "per_second": 60, "headers": {"Retry-After": "0.5"}}]
    with ProtocolServer(script=script) as server:
        async with gateway(server.url, concurrency=200) as door:
            results = await ask_all(door, [question(number) for number in range(200)])
        counts = server.counts()
    assert all(isinstance(result, CompletedReply) for result in results)
    assert counts["paid"] == 200
    assert counts["received"] <= 300


async def test_a_smaller_storm_is_weathered() -> None:
    with ProtocolServer(
        script=[{"do": "rate", "per_second": 20, "headers": {"Retry-After": "1"}}]
    ) as server:
        async with gateway(server.url, concurrency=50) as door:
            results = await ask_all(door, [question(number) for number in range(50)])
        counts = server.counts()
    assert all(isinstance(result, CompletedReply) for result in results)
    assert counts["received"] <= 50 + 2 * INITIAL_CALL_SLOTS, (
        "more was refused than the burst that found the limit"
    )
