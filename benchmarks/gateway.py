"""How fast conversations are scored by a model: the whole `score` graph beside a bare client, in the same run.

    python benchmarks/gateway.py [--quick] [--conversations 1000] [--concurrency 64] [--repeats 3]

A conversation of some 2 KB is judged on ten SAT and ten DSAT rubrics: two calls, ten answers each.
Every way sends the same bodies to the tests' loopback server and checks every answer:

- bare: `asyncio` with a semaphore and the `openai` client, prompts rendered beforehand, nothing
kept
- langchain-openai: `ChatOpenAI.ainvoke` over the client of the gateway, nothing kept
- gateway: the same calls through the gateway, ledger in memory
- gateway + store: intents and replies durable on disk
- score: all that `pollex score` does between reading and writing: graph, prompts, canaries, ledger,
answers, spans

The client has one core and the server another. Prints how many replies a second the store has on
the disk, and of each way calls a second, the share of what latency alone would allow, processor
time a call, and the ratios to bare: the median over the repeats of what was measured side by side.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, DefaultAioHttpClient
from pydantic import BaseModel, SecretStr, TypeAdapter
from small_form import Findings, arguments_of, run

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.roles import ask_both_sides
from pollex.conversations.conversation import Conversation
from pollex.gateway.budget import Limits
from pollex.gateway.calls import (
    Call,
    Capabilities,
    CompletedReply,
    FailedCall,
    Ledger,
    MemoryLedger,
    Outcome,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.roles import CONVERSATIONS_IN_FLIGHT_PER_SLOT
from pollex.runs.run import RunSettings
from pollex.runs.score_runs import run_scoring
from pollex.runs.workspace import collect_garbage_less_often
from pollex.store.ledger import StoreCallLedger
from pollex.store.store import Store

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests"),
    str(Path(__file__).parent.parent / "tests" / "endurance"),
]
from judged import MODEL, conversation, rubric_set  # noqa: E402 - what the tests are made of
from protocol_server import SubprocessServer  # noqa: E402

KEY = "no-key-needed"
SALT = b"benchmark"
CAN = Capabilities(
    model=MODEL,
    json_schema=True,
    tools=True,
    json_object=True,
    logprobs=0,
    seed=True,
    temperature=True,
    limit_field="max_completion_tokens",
    window=131_072,
    calls=0,
)
"""What most hosted models can do; with log-probabilities, replies are fifty times as long for every client."""


class Entry(BaseModel):
    """One answer."""

    why: str
    turns: list[int]
    answer: str


SHEET: TypeAdapter[dict[str, Entry]] = TypeAdapter(dict[str, Entry])


@dataclass(frozen=True)
class Work:
    """What every way has to do.

    Attributes:
        calls: Two a conversation, as the graph makes them.
    """

    url: str
    conversations: Sequence[Conversation]
    rubrics: RubricSet
    calls: Sequence[Call]
    limits: Limits

    @property
    def endpoint(self) -> Endpoint:
        """Where all is asked."""
        return Endpoint(MODEL, self.url, KEY)


Way = Callable[[Work], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One timing.

    Attributes:
        rate: Calls a second.
        cpu: Milliseconds of this process a call.
    """

    rate: float
    cpu: float


def judge_at(door: Any, rubrics: RubricSet) -> LlmJudge:
    """The judge as `pollex score` makes it."""
    return LlmJudge(PromptAsker(door, CAN, rubrics.domain, JudgeSettings(seed=0), SALT))


class Noting:
    """A door that notes calls and answers none."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def ask(self, call: Call) -> Outcome:
        """See `agents.llm.asking.ModelClient`."""
        self.calls.append(call)
        return FailedCall(fault="noted")


async def calls_of(conversations: Sequence[Conversation], rubrics: RubricSet) -> list[Call]:
    """All calls of a scoring run."""
    door = Noting()
    judge = judge_at(door, rubrics)
    for one in conversations:
        await ask_both_sides(judge, one, rubrics.questions)
    return door.calls


async def bare(work: Work) -> None:
    """The client as its documentation shows it, with a semaphore."""
    slots = asyncio.Semaphore(work.limits.concurrency)
    async with AsyncOpenAI(base_url=work.url, api_key=KEY, max_retries=0) as client:

        async def ask(call: Call) -> None:
            async with slots:
                reply = await client.chat.completions.create(**call.payload(MODEL, {}))
            SHEET.validate_json(reply.choices[0].message.content)

        await asyncio.gather(*map(ask, work.calls))


async def langchain_openai(work: Work) -> None:
    """`ChatOpenAI.ainvoke` over a client as the gateway's."""
    slots = asyncio.Semaphore(work.limits.concurrency)
    async with DefaultAioHttpClient() as client:
        model = ChatOpenAI(
            model=MODEL,
            base_url=work.url,
            api_key=SecretStr(KEY),
            max_retries=0,
            http_async_client=client,
        )

        async def ask(call: Call) -> None:
            body = call.payload(MODEL, {})
            del body["model"]
            messages = body.pop("messages")
            async with slots:
                reply = await model.ainvoke(messages, **body)
            SHEET.validate_json(str(reply.content))

        await asyncio.gather(*map(ask, work.calls))


async def through(ledger: Ledger, work: Work) -> None:
    """The gateway."""
    async with Gateway(work.endpoint, ledger, work.limits) as gateway:

        async def ask(call: Call) -> None:
            outcome = await gateway.ask(call)
            if not isinstance(outcome, CompletedReply):
                raise RuntimeError(f"no answer: {outcome}")
            SHEET.validate_json(outcome.text)

        await asyncio.gather(*map(ask, work.calls))


async def gateway_in_memory(work: Work) -> None:
    """The gateway with a ledger that forgets."""
    await through(MemoryLedger(), work)


async def gateway_with_store(work: Work) -> None:
    """The gateway with the ledger of a run."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        await through(StoreCallLedger(store), work)


async def score_graph(work: Work) -> None:
    """The whole graph, as `pollex score` runs it."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        ledger = StoreCallLedger(store)
        async with Gateway(work.endpoint, ledger, work.limits, window=CAN.window) as gateway:
            scored = await run_scoring(
                work.conversations,
                work.rubrics,
                judge=judge_at(gateway, work.rubrics),
                data_fingerprint="benchmark",
                setting=RunSettings.of(
                    store,
                    traced=ledger.trace,
                    batch=CONVERSATIONS_IN_FLIGHT_PER_SLOT * work.limits.concurrency,
                    at_once=2 * work.limits.concurrency,
                ),
            )
    if scored.counts != {"scored": len(work.conversations)}:
        raise RuntimeError(f"not all was scored: {scored.counts}")


async def durable_replies(tasks: int = 64, each: int = 100) -> float:
    """How many replies of 1.5 kB a second the store has on the disk before their callers go on."""
    body = "x" * 1500
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        ledger = StoreCallLedger(store)

        async def task(number: int) -> None:
            for call in range(each):
                await ledger.record(f"{number}-{call}", 1, {"kind": "completed"}, body)

        begun = time.perf_counter()
        await asyncio.gather(*map(task, range(tasks)))
        return tasks * each / (time.perf_counter() - begun)


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
WAYS: dict[str, Way] = {
    "bare": bare,
    "langchain-openai": langchain_openai,
    "gateway": gateway_in_memory,
    "gateway + store": gateway_with_store,
    "score": score_graph,
}


def measure(way: Way, work: Work) -> Measured:
    """Runs one way once."""
    wall = time.perf_counter()
    cpu = time.process_time()
    with collect_garbage_less_often() if way is score_graph else nullcontext():
        asyncio.run(way(work))  # type: ignore[arg-type]
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    return Measured(len(work.calls) / wall, 1000 * cpu / len(work.calls))


def compare(
    latency: float, conversations: Sequence[Conversation], limits: Limits, repeats: int
) -> float:
    """Measure all ways in turn, print a table, and return the rate of a scoring run over that of a bare client."""
    runs: dict[str, list[Measured]] = {name: [] for name in WAYS}
    with (
        on_core(1),
        SubprocessServer(latency=latency, script=[{"do": "attentive", "kept": True}]) as server,
    ):
        rubrics = rubric_set(server.url)
        calls = asyncio.run(calls_of(conversations, rubrics))
        work = Work(server.url, conversations, rubrics, calls, limits)
        with on_core(0):
            # the server has written every answer once, and all that is imported late is
            asyncio.run(bare(work))
            for _ in range(repeats):
                for name, way in WAYS.items():
                    runs[name].append(measure(way, work))
        counts = server.counts()
    if counts["paid"] != len(calls) * (1 + len(WAYS) * repeats) or counts["distinct"] > 3 * len(
        calls
    ):
        raise RuntimeError(f"the server counted otherwise: {counts}")
    concurrency = limits.concurrency
    print(
        f"\n{len(conversations)} conversations, {len(calls)} calls, concurrency {concurrency}, ",
        end="",
    )
    print(f"{1000 * latency:.0f} ms latency, median of {repeats}")
    print(
        f"{'':18}{'calls/s':>9}{'of ideal':>10}{'CPU ms/call':>13}{'rate of bare':>14}{'CPU of bare':>13}"
    )
    for name, measured in runs.items():
        rate = statistics.median(run.rate for run in measured)
        ideal = f"{rate * latency / concurrency:.2f}" if latency else "-"
        cpu = statistics.median(run.cpu for run in measured)
        ratio = statistics.median(
            run.rate / base.rate for run, base in zip(measured, runs["bare"], strict=True)
        )
        load = statistics.median(
            run.cpu / base.cpu for run, base in zip(measured, runs["bare"], strict=True)
        )
        print(f"{name:18}{rate:9.0f}{ideal:>10}{cpu:13.2f}{ratio:14.2f}{load:13.2f}")
    return ratio


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """Runs what is inside, and processes begun there, on one core, where the machine has several and lets choose."""
    if len(CORES) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CORES[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def main() -> int:
    """See the module."""
    parser = arguments_of(__doc__)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    return run(parser, measure_all, ["--conversations", "100", "--repeats", "1"])


def measure_all(options: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    count = options.conversations
    repeats = options.repeats
    conversations = [conversation(number, words=130) for number in range(count)]
    durable = [asyncio.run(durable_replies()) for _ in range(repeats)]
    rates: dict[str, float] = {}
    print(f"{statistics.median(durable):.0f} durable replies a second, median of {repeats}")
    for latency in (0.2, 0.0):
        rates[f"{1000 * latency:.0f} ms"] = compare(
            latency, conversations, Limits(concurrency=options.concurrency), repeats
        )
    return Findings(
        figures=rates,
        bars={"a scoring run is not under a quarter of a bare client": min(rates.values()) > 0.25},
    )


if __name__ == "__main__":
    raise SystemExit(main())
