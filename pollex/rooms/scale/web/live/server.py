"""Starting and stopping the scoring service."""

import asyncio
import json
import os
import secrets
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from pollex.errors import WrongUse
from pollex.rooms.scale.web.live.app import make_application
from pollex.rooms.scale.web.live.waiting_line import ServiceMetrics, WaitingLine, open_scorer
from pollex.services.telemetry import open_event_exporter
from pollex.store.folder import DEFAULT_STORE_FOLDER
from pollex.usecases.serve import ServeStore
from pollex.web.guard import is_loopback
from pollex.web.server import Server, open_socket

TOKEN_VARIABLE = "POLLEX_TOKEN"  # noqa: S105 - the name of a variable
SHUTDOWN_SECONDS = 30
"""Seconds that requests under way have after SIGTERM."""


def serve_scores(serve_store: ServeStore) -> int:
    """Serve scores until Ctrl-C or SIGTERM; return the exit code."""
    rubrics = serve_store.score
    assert rubrics is not None, "what is served is pages otherwise"
    if serve_store.no_token and not is_loopback(serve_store.host):
        raise WrongUse(
            "without a token it serves this machine only",
            hint="leave it out",
            option="no_token",
        )

    # a token of the environment is never printed; one that is made up has to be
    chosen_token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not serve_store.no_token:
        token = chosen_token or secrets.token_urlsafe(24)
    else:
        token = None

    # the set is read before the port is taken
    store = serve_store.store or Path(DEFAULT_STORE_FOLDER)
    scorer = open_scorer(rubrics, store)
    listening = open_socket(serve_store.host, serve_store.port)
    print_address(
        serve_store,
        listening.getsockname()[1],
        None if chosen_token else token,
    )

    # the file of events is open as long as the service runs
    async def run() -> None:
        with open_event_exporter(serve_store.events, scorer.rubrics.rubrics_digest) as emit:
            line = WaitingLine(
                rubrics,
                scorer,
                serve_store.queue,
                ServiceMetrics(),
                store,
                emit,
            )
            await _run_server(line, token, listening)

    asyncio.run(run())
    return 0


async def _run_server(
    line: WaitingLine,
    token: str | None,
    listening: socket.socket,
) -> None:
    server = Server(
        make_application(line, token),
        SHUTDOWN_SECONDS,
        partial(setattr, line, "draining", True),
    )
    # the line scores and looks for a new set beside the server
    beside = [asyncio.create_task(line.work()), asyncio.create_task(line.look())]
    try:
        await server.serve(sockets=[listening])
    # ended with the server, so that the thread that scores is free
    finally:
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        line.close()


def print_address(serve_store: ServeStore, port: int, token: str | None) -> None:
    """Print the address, and a token that was made up."""
    # an IPv6 address takes brackets in a URL
    if ":" in serve_store.host:
        host = f"[{serve_store.host}]"
    else:
        host = serve_store.host

    address = f"http://{host}:{port}"
    if serve_store.as_json:
        click.echo(json.dumps({"url": address, "port": port} | ({"token": token} if token else {})))
        return

    click.echo(f"Scoring at {address}/v1/score; Ctrl-C ends it.")
    if token:
        click.echo(f"Token: {token} (set {TOKEN_VARIABLE} to choose one)")
