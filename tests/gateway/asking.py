"""Calls and gateways for tests."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pollex.gateway.calls import Call
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.ledger import Ledger, MemoryLedger, StoredCall
from pollex.gateway.limits import Limits
from pollex.gateway.outcomes import Outcome

KEY = "test-key-0123456789"
LABELS = ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree"]
SCHEMA = {"type": "object", "properties": {"why": {"type": "string"}, "answer": {"enum": LABELS}}}


def question(number: int = 0, **settings: Any) -> Call:
    """The call with that number."""
    messages = [{"role": "user", "content": f"Question {number}: was the user content?"}]
    return Call(**{"messages": messages, "schema": SCHEMA, "stage": "judge", "item": str(number), **settings})


def gateway(url: str, ledger: Ledger | None = None, **limits: Any) -> Gateway:
    """A gateway to the protocol server."""
    return Gateway(Endpoint("any-model", url, KEY), ledger or MemoryLedger(), Limits(**limits))


async def ask_all(door: Gateway, calls: Sequence[Call]) -> list[Outcome | BaseException]:
    """What came of each call, errors included."""
    return await asyncio.gather(*(door.ask(call) for call in calls), return_exceptions=True)


async def ask_once(url: str, call: Call | None = None, **limits: Any) -> Outcome:
    """The outcome of one call through a gateway of its own."""
    async with gateway(url, **limits) as door:
        return await door.ask(call or question())


class FileLedger:
    """A ledger of JSON lines, each on disk before the next call: the least that a kill test needs."""

    def __init__(self, path: Path) -> None:
        self._calls: dict[str, StoredCall] = {}
        whole = path.read_bytes() if path.exists() else b""
        whole = whole[: whole.rfind(b"\n") + 1]
        for line in whole.splitlines():
            entry = json.loads(line)
            self._calls[entry["key"]] = StoredCall(**entry)
        path.write_bytes(whole)
        self._file = path.open("ab", buffering=0)

    def __len__(self) -> int:
        return len(self._calls)

    async def lookup(self, key: str) -> StoredCall | None:
        return self._calls.get(key)

    async def intend(self, key: str, attempt: int, about: Mapping[str, Any]) -> None:
        return None

    async def record(self, key: str, attempt: int, outcome: Mapping[str, Any], raw: str) -> None:
        line = json.dumps({"key": key, "outcome": dict(outcome), "raw": raw}).encode() + b"\n"
        self._file.write(line)
        os.fdatasync(self._file.fileno())
        self._calls[key] = StoredCall(key, dict(outcome), raw)
