"""Starting and stopping the server: what it finds, where it listens, whom it lets in."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import uvicorn

from pollex.errors import WrongUse
from pollex.services.recorded import sets_in
from pollex.store.database import FILE
from pollex.store.folder import STORE
from pollex.store.store import Store
from pollex.web import links
from pollex.web.app import application
from pollex.web.guard import Door, is_loopback
from pollex.web.guests import guests_of
from pollex.web.profiles import read_profiles
from pollex.web.site import Site, calibrators_beside, calibrators_in, kept_token, read_sets, sets_beside
from pollex.web.studies import read_studies

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Serving:
    """Settings of a server.

    Attributes:
        names: Names that it may be reached under, besides loopback's.
        behind: Address of the proxy in front of it.
        opens: Open the browser.
        replay: Folder that the recorded run is replayed into while pages are shown; None: nothing is.
    """

    store: Path | None = None
    rubrics: tuple[Path, ...] = ()
    calibrators: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    behind: str | None = None
    read_only: bool = False
    profiles: Path | None = None
    studies: tuple[Path, ...] = ()
    token: bool = True
    opens: bool = True
    as_json: bool = False
    replay: Path | None = None


def serve(serving: Serving) -> int:
    """Serve a store until Ctrl-C or SIGTERM; return the exit code."""
    require_safe(serving)
    folder = serving.store or found_store(Path())
    listening = listen(serving.host, serving.port)
    port = listening.getsockname()[1]
    with Store.open(folder, read_only=serving.read_only, goes_on=True) as store:
        token = kept_token(folder) if serving.token else None
        files = read_sets(serving.rubrics) if serving.rubrics else sets_beside(folder)
        profiles = read_profiles(serving.profiles)
        calibrators = calibrators_in(serving.calibrators) if serving.calibrators else calibrators_beside(folder)
        site = Site(store, files, token, serving.read_only, calibrators=calibrators, profiles=profiles)
        if studies := read_studies(serving.studies, profiles):
            site.require_writing()
            store.put(studies)
            store.flush()
        names = {*LOOPBACK, serving.host, *serving.names}
        door = Door.at(names, port, token, site.id, serving.behind, guests_of(store))
        start = address_of(serving, port) + links.address(links.ENTER, token=token)
        tell(serving, start, folder, port)
        asyncio.run(_run(site, door, listening, serving.replay))
    return 0


class Server(uvicorn.Server):
    """A server that ends cleanly at a signal, without raising it again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the event loop."""
        yield


def start_replay(site: Site, out: Path) -> None:
    """Start to replay the recorded run into a folder; its rubric sets are shown once it has ended."""
    words, arguments = "Replaying the recorded run: about a minute", ("demo", "--recorded", "--json", "--out", str(out))
    site.children.start(words, arguments, back=links.HOME, after=lambda: site.files.update(read_sets(sets_in(out))))


async def _run(site: Site, door: Door, listening: socket.socket, replay: Path | None) -> None:
    config = uvicorn.Config(
        application(site, door),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        ws="none",
        lifespan="off",
    )
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    if replay is not None:
        start_replay(site, replay)
    try:
        await server.serve(sockets=[listening])
    finally:
        await site.children.close()


def found_store(here: Path) -> Path:
    """Return the default store, or the only one in a subfolder."""
    usual = here / STORE
    below = [path.parent for path in sorted(here.glob(f"*/{STORE}/{FILE}"))]
    return below[0] if not (usual / FILE).exists() and len(below) == 1 else usual


def require_safe(serving: Serving) -> None:
    """Raise WrongUse where others could come in who should not."""
    local = is_loopback(serving.host)
    if not local and not serving.names:
        raise WrongUse(
            f"{serving.host} can be reached from other machines",
            remedy="name the host that they will use",
            option={"allow_host": "NAME"},
        )
    if not serving.token and (not local or serving.names or serving.behind):
        raise WrongUse("without a token it serves this machine only", remedy="leave it out", option="no_token")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; an error for a used port names a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its name asyncio knows a TCP socket, and sends at once: else an answer's second half waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as failure:
        listening.close()
        if failure.errno != errno.EADDRINUSE:
            raise WrongUse(f"can't listen at {host}:{port}: {failure.strerror}", remedy="give another") from failure
        remedy = f"take the next free one: --port {free_port(host, port)}"
        raise WrongUse(f"port {port} is in use", where=host, remedy=remedy) from failure
    listening.listen(128)
    return listening


def free_port(host: str, after: int) -> int:
    """Return a free port after `after`; 0 if the next hundred are used."""
    for port in range(after + 1, min(after + 100, 65536)):
        with socket.socket() as tried:
            if tried.connect_ex((host, port)) != 0:
                return port
    return 0


def address_of(serving: Serving, port: int) -> str:
    """Return the address under which people open it."""
    host = serving.names[0] if serving.names else serving.host
    return serving.behind.rstrip("/") if serving.behind else f"http://{f'[{host}]' if ':' in host else host}:{port}"


def tell(serving: Serving, address: str, folder: Path, port: int) -> None:
    """Print the address; open it where there is a screen."""
    if serving.as_json:
        click.echo(json.dumps({"url": address, "store": str(folder), "port": port}))
    else:
        click.echo(f"Showing {folder} at\n  {address}\nCtrl-C ends it.")
        if os.environ.get("SSH_CONNECTION"):
            click.echo(f"From your own machine: ssh -L {port}:127.0.0.1:{port} HOST, then open the address there.")
    if serving.opens and not os.environ.get("SSH_CONNECTION"):
        webbrowser.open(address)
