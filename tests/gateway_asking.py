"""Calls and gateways for tests."""

import asyncio
from collections.abc import Sequence
from typing import Any

from protocol_server import ProtocolServer

from pollex.gateway.budget import Limits
from pollex.gateway.calls import Call, Ledger, MemoryLedger, Outcome
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway

KEY = "test-key-0123456789"
LABELS = ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree"]
SCHEMA = {"type": "object", "properties": {"why": {"type": "string"}, "answer": {"enum": LABELS}}}


def question(number: int = 0, **settings: Any) -> Call:
    """The call with that number."""
    messages = [{"role": "user", "content": f"Question {number}: was the user content?"}]
    return Call(
        **{
            "messages": messages,
            "schema": SCHEMA,
            "stage": "judge",
            "item": str(number),
            "apart": True,
            **settings,
        }
    )


def gateway(url: str, ledger: Ledger | None = None, **limits: Any) -> Gateway:
    """A gateway to the protocol server, quick to try again."""
    return Gateway(
        Endpoint("any-model", url, KEY),
        MemoryLedger() if ledger is None else ledger,
        Limits(**{"backoff": 0.03, **limits}),
    )


async def ask_all(door: Gateway, calls: Sequence[Call]) -> list[Outcome | BaseException]:
    """What came of each call, errors included."""
    return await asyncio.gather(*(door.ask(call) for call in calls), return_exceptions=True)


async def ask_once(url: str, call: Call | None = None, **limits: Any) -> Outcome:
    """The outcome of one call through a gateway of its own."""
    async with gateway(url, **limits) as door:
        return await door.ask(call or question())


async def received(server: ProtocolServer, number: int) -> None:
    """Waits until the server has got that many requests."""
    while server.counts()["received"] < number:  # noqa: ASYNC110 - the server is on another thread
        await asyncio.sleep(0.01)
