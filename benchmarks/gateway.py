"""How fast calls go through the gateway, beside a bare client in the same run, against the tests' loopback server.

    python benchmarks/gateway.py [--quick] [--calls 2000] [--concurrency 64] [--repeats 3]

Each way asks the same calls (a 2 KB conversation, ten answers in a JSON schema) and validates every answer:

- bare: `asyncio` with a semaphore and the `openai` client, nothing kept
- gateway: ledger in memory
- gateway + store: intents and replies durable on disk, as in a run

Prints calls a second, the share of what latency alone would allow, processor time a call, and the ratio to bare: the
median over the repeats of what was measured side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from openai import AsyncOpenAI
from pydantic import BaseModel, TypeAdapter

from pollex.gateway.calls import Call
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.gateway.ledger import Ledger, MemoryLedger
from pollex.gateway.limits import Limits
from pollex.gateway.structured import last_object
from pollex.store.ledger import StoreLedger
from pollex.store.store import Store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from protocol_server import SubprocessServer

OPTIONS = ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree"]
ANSWER = {"type": "object", "properties": {"why": {"type": "string"}, "option": {"type": "string", "enum": OPTIONS}}}
SCHEMA = {
    "type": "object",
    "properties": {"answers": {"type": "array", "items": ANSWER, "minItems": 10, "maxItems": 10}},
}
KEY = "no-key-needed"


class Answer(BaseModel):
    """One answer."""

    why: str
    option: str


class Sheet(BaseModel):
    """All answers of a call."""

    answers: list[Answer]


SHEET = TypeAdapter(Sheet)
Way = Callable[[str, Sequence[Call], int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One timing.

    Attributes:
        rate: Calls a second.
        cpu: Milliseconds of this process a call.
    """

    rate: float
    cpu: float


async def bare(url: str, calls: Sequence[Call], concurrency: int) -> None:
    """The client as its documentation shows it, with a semaphore."""
    slots = asyncio.Semaphore(concurrency)
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    async with AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:

        async def ask(call: Call) -> None:
            async with slots:
                reply = await client.chat.completions.create(
                    model="any-model",
                    messages=call.messages,
                    response_format=form,  # type: ignore[call-overload]
                )
            SHEET.validate_json(reply.choices[0].message.content)

        await asyncio.gather(*map(ask, calls))


async def through(ledger: Ledger, url: str, calls: Sequence[Call], concurrency: int) -> None:
    """The gateway."""
    async with Gateway(Endpoint("any-model", url, KEY), ledger, Limits(concurrency=concurrency)) as gateway:

        async def ask(call: Call) -> None:
            outcome = await gateway.ask(call)
            block = last_object(outcome.text)
            if block is None:
                raise RuntimeError(f"no answer: {outcome}")
            SHEET.validate_python(block.value)

        await asyncio.gather(*map(ask, calls))


async def gateway_in_memory(url: str, calls: Sequence[Call], concurrency: int) -> None:
    """The gateway with a ledger that forgets."""
    await through(MemoryLedger(), url, calls, concurrency)


async def gateway_with_store(url: str, calls: Sequence[Call], concurrency: int) -> None:
    """The gateway with the ledger of a run."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        await through(StoreLedger(store), url, calls, concurrency)


WAYS: dict[str, Way] = {"bare": bare, "gateway": gateway_in_memory, "gateway + store": gateway_with_store}


def questions(number: int) -> list[Call]:
    """Calls of about 2 KB each."""
    words = "The assistant explains why the build fails and the user tries it at once. " * 26
    return [
        Call(messages=[{"role": "user", "content": f"Conversation {n}. {words}"}], schema=SCHEMA) for n in range(number)
    ]


def measure(way: Way, url: str, calls: Sequence[Call], concurrency: int) -> Measured:
    """Runs one way once."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(way(url, calls, concurrency))  # type: ignore[arg-type]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(len(calls) / wall, 1000 * cpu / len(calls))


def compare(latency: float, calls: Sequence[Call], concurrency: int, repeats: int) -> None:
    """Measures all ways in turn, `repeats` times, and prints a table."""
    runs: dict[str, list[Measured]] = {name: [] for name in WAYS}
    with SubprocessServer(latency=latency) as server:
        for _ in range(repeats):
            for name, way in WAYS.items():
                runs[name].append(measure(way, server.url, calls, concurrency))
        counts = server.counts()
    if counts["paid"] != len(calls) * len(WAYS) * repeats:
        raise RuntimeError(f"the server counted otherwise: {counts}")
    print(f"\n{len(calls)} calls, concurrency {concurrency}, {1000 * latency:.0f} ms latency, median of {repeats}")
    print(f"{'':18}{'calls/s':>9}{'of ideal':>10}{'CPU ms/call':>13}{'of bare':>9}")
    for name, measured in runs.items():
        rate = statistics.median(run.rate for run in measured)
        ideal = f"{rate * latency / concurrency:.2f}" if latency else "-"
        cpu = statistics.median(run.cpu for run in measured)
        ratio = statistics.median(run.rate / base.rate for run, base in zip(measured, runs["bare"], strict=True))
        print(f"{name:18}{rate:9.0f}{ideal:>10}{cpu:13.2f}{ratio:9.2f}")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Calls a second through the gateway and through a bare client.")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="300 calls, once")
    options = parser.parse_args()
    calls, repeats = (300, 1) if options.quick else (options.calls, options.repeats)
    for latency in (0.2, 0.0):
        compare(latency, questions(calls), options.concurrency, repeats)


if __name__ == "__main__":
    main()
