"""A run in a process of its own, for tests that kill it."""

import asyncio
import json
import multiprocessing
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from gateway_asking import ask_all, gateway, question
from protocol_server import SubprocessServer

from pollex.gateway.calls import CompletedReply
from pollex.store.ledger import StoreCallLedger
from pollex.store.store import Store

CALLS = 250

# Forks of one process that has everything imported start in milliseconds and share nothing with the
# test's own.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["killed"])


def run(url: str, folder: Path, concurrency: int) -> None:
    """Asks all calls through the store's ledger and, when all are answered, writes the answers down."""
    answers = asyncio.run(_answers(url, folder / "store", concurrency))
    (folder / "answers.json").write_text(json.dumps(answers))


async def _answers(url: str, folder: Path, concurrency: int) -> dict[str, str]:
    calls = [question(number) for number in range(CALLS)]
    with Store.open(folder) as store:
        async with gateway(url, StoreCallLedger(store), concurrency=concurrency) as door:
            outcomes = await ask_all(door, calls)
    return {
        call.item: outcome.text
        for call, outcome in zip(calls, outcomes, strict=True)
        if isinstance(outcome, CompletedReply)
    }


def start(url: str, folder: Path, concurrency: int) -> BaseProcess:
    """Starts `run`."""
    process = _PROCESSES.Process(target=run, args=(url, folder, concurrency))
    process.start()
    return process


def finish(url: str, folder: Path, concurrency: int) -> dict[str, str]:
    """Runs to the end; the answers by item."""
    process = start(url, folder, concurrency)
    process.join(60)
    assert process.exitcode == 0
    answers: dict[str, str] = json.loads((folder / "answers.json").read_text())
    return answers


def kill_after(
    server: SubprocessServer,
    received: int,
    folder: Path,
    concurrency: int,
    how: int = signal.SIGKILL,
) -> None:
    """Starts a run and ends it by a signal when the server has got that many requests in all."""
    process = start(server.url, folder, concurrency)
    until = time.monotonic() + 60
    while process.is_alive() and server.counts()["received"] < received:
        assert time.monotonic() < until
        time.sleep(0.002)
    assert process.pid is not None
    if process.is_alive():
        os.kill(process.pid, how)
    process.join(60)
