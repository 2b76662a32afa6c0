"""Latency and throughput of the scoring service, on one core.

    python benchmarks/service.py --data LOG [--rubrics SET] [--n 500] [--at-once 16] [--json]

`pollex serve --score` runs as a process of its own on one core, with the set that is given or
learned from the log's first half. Conversations have 20 turns (those of the log, cut or repeated),
every text new. One client sends them one after another (latency), then several at once
(throughput), then in one stream of lines. Beside them the CPU seconds of the server a conversation:
on a machine that does other work, too, only these say much.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from plain_learning import learn_from
from small_form import FEW, Findings, arguments_of, run

import pollex
from pollex.runs.options import RunOptions

TURNS = 20
WAYS = 3
WARM = 50
TOKEN = "of the benchmark"  # noqa: S105 - of a server on loopback that ends with this program
Sending = Callable[[httpx2.AsyncClient, list[dict[str, Any]]], Awaitable[list[float]]]


def main() -> int:
    """Print latency, throughput and CPU."""
    parser = arguments_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a log with thumbs")
    parser.add_argument("--rubrics", type=Path, help="a rubric set; else one is learned")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=16)
    return run(parser, measure_all, ["--data", FEW, "--n", "20", "--at-once", "4"])


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    conversations = list(pollex.read_logs(given.data))
    with tempfile.TemporaryDirectory() as folder:
        rubrics = given.rubrics or learned(conversations[: len(conversations) // 2], Path(folder))
        found = asyncio.run(measured(rubrics, conversations, given.n, given.at_once, Path(folder)))
    print("\n".join(in_words(*row) for row in found.items()))
    return Findings(figures=found, bars={"every way of asking was answered": len(found) == WAYS})


def learned(conversations: Sequence[pollex.Conversation], folder: Path) -> Path:
    """A set learned from these."""
    rubrics = learn_from(conversations, RunOptions(folder / "store"))
    rubrics.save(folder / "rubrics.json")
    return folder / "rubrics.json"


def made(conversations: Sequence[pollex.Conversation]) -> Iterator[dict[str, Any]]:
    """Conversations of twenty turns without end, no text twice."""
    for number, one in enumerate(cycle([c for c in conversations if len(c.turns) >= 2])):
        pair = len(one.turns) // 2 * 2
        turns = islice(cycle(one.turns[:pair]), TURNS)
        messages = [
            {"role": t.role, "content": f"{t.content} ({number}.{place})"}
            for place, t in enumerate(turns)
        ]
        yield {"id": str(number), "messages": messages}


async def measured(
    rubrics: Path, conversations: Sequence[pollex.Conversation], n: int, at_once: int, folder: Path
) -> dict[str, dict[str, float]]:
    """Figures by way of sending."""

    async def one_by_one(client: httpx2.AsyncClient, rows: list[dict[str, Any]]) -> list[float]:
        return [await timed(client, row) for row in rows]

    async def several(client: httpx2.AsyncClient, rows: list[dict[str, Any]]) -> list[float]:
        feed = iter(rows)

        async def sender() -> list[float]:
            return [await timed(client, row) for row in feed]

        return [
            second
            for some in await asyncio.gather(*(sender() for _ in range(at_once)))
            for second in some
        ]

    async def stream(client: httpx2.AsyncClient, rows: list[dict[str, Any]]) -> list[float]:
        text = "\n".join(map(json.dumps, rows))
        answer = await client.post(
            "/v1/score", content=text, headers={"Content-Type": "application/x-ndjson"}
        )
        assert answer.text.count("\n") == len(rows)
        return []

    ways: dict[str, Sending] = {
        "one by one": one_by_one,
        f"{at_once} at once": several,
        "a stream": stream,
    }
    source = made(conversations)
    server = started(rubrics, folder)
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=300) as client:
            await several(client, list(islice(source, min(n, WARM))))
            found = {}
            for name, send in ways.items():
                rows = list(islice(source, n))
                cpu = cpu_of(server.pid)
                begun = time.perf_counter()
                seconds = await send(client, rows)
                took = time.perf_counter() - begun
                found[name] = {
                    "n": n,
                    "a second": n / took,
                    "CPU ms": 1000 * (cpu_of(server.pid) - cpu) / n,
                }
                if seconds:
                    found[name] |= {
                        f"p{p} ms": float(1000 * np.percentile(seconds, p)) for p in (50, 95, 99)
                    }
    finally:
        server.terminate()
        server.wait()
    return found


def started(rubrics: Path, folder: Path) -> subprocess.Popen[str]:
    """The service on one core."""
    environment = os.environ | {"POLLEX_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "pollex",
        "serve",
        "--score",
        str(rubrics.absolute()),
        "--port",
        "0",
        "--json",
    ]
    return subprocess.Popen(  # noqa: S603
        command,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=on_one_core,
    )


def on_one_core() -> None:
    """Keep the server to the last core that is there."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


async def timed(client: httpx2.AsyncClient, row: dict[str, Any]) -> float:
    """Seconds until a conversation had its score."""
    begun = time.perf_counter()
    answer = await client.post("/v1/score", json=row)
    assert answer.json()["outcome"] == "scored", answer.text
    return time.perf_counter() - begun


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_words(name: str, found: dict[str, float]) -> str:
    """One way's row."""
    return f"{name:<12} " + ", ".join(f"{key} {value:,.1f}" for key, value in found.items())


if __name__ == "__main__":
    raise SystemExit(main())
