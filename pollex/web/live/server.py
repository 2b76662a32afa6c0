"""Starting and stopping the scoring service."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import uvicorn

from pollex.errors import WrongUse
from pollex.services.telemetry import exporting
from pollex.store.folder import STORE
from pollex.web.guard import is_loopback
from pollex.web.live.app import application
from pollex.web.live.figures import Figures
from pollex.web.live.waiting_line import WaitingLine, opened
from pollex.web.server import Server, listen

TOKEN = "POLLEX_TOKEN"  # noqa: S105 - the name of a variable
GRACE = 30
"""Seconds that requests under way have after SIGTERM."""


@dataclass(frozen=True)
class Scoring:
    """Settings of the service.

    Attributes:
        queue: Conversations that may wait.
        token: Whether requests need a token.
        events: Address of an OpenTelemetry collector that each score is sent to.
    """

    rubrics: Path
    store: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    queue: int = 256
    token: bool = True
    as_json: bool = False
    events: str | None = None


def serve_scores(scoring: Scoring) -> int:
    """Serve scores until Ctrl-C or SIGTERM; return the exit code."""
    if not scoring.token and not is_loopback(scoring.host):
        raise WrongUse("without a token it serves this machine only", remedy="leave it out", option="no_token")
    given = os.environ.get(TOKEN, "").strip()
    token = (given or secrets.token_urlsafe(24)) if scoring.token else None
    store = scoring.store or Path(STORE)
    scorer = opened(scoring.rubrics, store)
    listening = listen(scoring.host, scoring.port)
    tell(scoring, listening.getsockname()[1], None if given else token)

    async def run() -> None:
        with exporting(scoring.events, scorer.rubrics.rubrics_digest) as emit:
            line = WaitingLine(scoring.rubrics, scorer, scoring.queue, Figures(), store, emit)
            await _run(line, token, listening)

    asyncio.run(run())
    return 0


async def _run(line: WaitingLine, token: str | None, listening: socket.socket) -> None:
    config = uvicorn.Config(
        application(line, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
        lifespan="off",
    )
    server = Server(config)

    def stop() -> None:
        line.draining = True
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    beside = [asyncio.create_task(line.work()), asyncio.create_task(line.look())]
    try:
        await server.serve(sockets=[listening])
    finally:
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        line.close()


def tell(scoring: Scoring, port: int, token: str | None) -> None:
    """Print the address, and a token that was made up."""
    host = f"[{scoring.host}]" if ":" in scoring.host else scoring.host
    address = f"http://{host}:{port}"
    if scoring.as_json:
        click.echo(json.dumps({"url": address, "port": port} | ({"token": token} if token else {})))
        return
    click.echo(f"Scoring at {address}/v1/score; Ctrl-C ends it.")
    if token:
        click.echo(f"Token: {token} (set {TOKEN} to choose one)")
