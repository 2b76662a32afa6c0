"""Starting and stopping the server: what it finds, where it listens, whom it lets in."""

import asyncio
import errno
import json
import os
import signal
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import uvicorn
from starlette.types import ASGIApp

from pollex.errors import WrongUse
from pollex.runs.recorded import RUBRICS_FILE_NAME, Recording, list_demo_rubric_sets
from pollex.services.bring import AllowedRoots
from pollex.services.readings import remove_incomplete_logs
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.folder import DEFAULT_STORE_FOLDER, remove_draft_copies
from pollex.store.store import Store
from pollex.text import format_count
from pollex.usecases.serve import ServeStore
from pollex.web import links
from pollex.web.app import make_application
from pollex.web.guard import AccessRules, is_loopback
from pollex.web.guests import list_guests, list_links
from pollex.web.hooks import begin_served
from pollex.web.profiles import read_profiles
from pollex.web.site import (
    Site,
    read_or_make_token,
    read_sets,
    read_sets_beside,
)
from pollex.web.watching import get_watcher

EXAMPLE = Path("pollex-example")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(example: ServeStore) -> int:
    """Serve a store until Ctrl-C or SIGTERM; return the exit code."""
    require_safe(example)
    replay = None
    # an example without rubrics is made by the recorded run, while pages are served already
    if example.example and not (EXAMPLE / RUBRICS_FILE_NAME).exists():
        replay = EXAMPLE
    if replay is not None:
        Recording.bundled().prepare(EXAMPLE / DEFAULT_STORE_FOLDER)

    if example.example:
        example = replace(
            example,
            store=EXAMPLE / DEFAULT_STORE_FOLDER,
            rubrics=list_demo_rubric_sets(EXAMPLE),
        )

    folder = example.store or find_store(Path())
    # the port comes first: if it is in use, nothing has been opened yet
    listening = open_socket(example.host, example.port)
    port = listening.getsockname()[1]
    with Store.open(folder, read_only=example.read_only, goes_on=True) as store:
        token = None
        if not example.no_token:
            token = read_or_make_token(folder)
        # sets that were named, or else those beside the store
        if example.rubrics:
            files = read_sets(example.rubrics, folder)
        else:
            files = read_sets_beside(folder)

        profiles = read_profiles(example.profiles)
        asked_for = tuple(files) if example.rubrics else ()
        site = Site(
            store,
            files,
            token,
            example.read_only,
            asked_for,
            profiles=profiles,
            here=Path() if is_for_its_owner(example) else None,
            local_endpoints=example.allow_local_endpoints or is_for_its_owner(example),
            roots=AllowedRoots(tuple(example.roots), is_open=is_for_its_owner(example)),
            max_upload=example.max_upload,
        )
        # what an earlier server left: its commands, uploads cut off halfway, folders to look at
        if not example.read_only:
            site.children.find_again()
            remove_incomplete_logs(folder)
            begin_watching(site, example)

        begin_served(site, {"calibrators": example.calibrators, "studies": example.studies})
        # names by which this server is asked; requests to any other are refused
        names = {*LOOPBACK, example.host, *example.allow_host}
        door = AccessRules.at(
            names,
            port,
            token,
            site.id,
            example.behind,
            list_guests(store),
            example.max_upload,
        )
        start = make_address(example, port) + links.address(links.ENTER, token=token)
        print_address(example, start, folder, port)
        if not example.read_only:
            tell_set_aside(site)
        if replay is not None:
            start_replay(site, replay)
        if not example.read_only:
            remove_draft_copies(folder)
        try:
            asyncio.run(Server(make_application(site, door), 5).serve(sockets=[listening]))
        finally:
            if site.watcher is not None:
                site.watcher.close()
            # commands write to the store, so that they end before it is closed
            site.children.close()
            site.reader.close()
            if not example.read_only:
                remove_draft_copies(folder)

    return 0


def begin_watching(site: Site, serve_store: ServeStore) -> None:
    """Look at the folders that were named, and at those that pages named before."""
    watcher = get_watcher(site)
    for folder in serve_store.watch:
        watcher.add(
            folder.absolute(),
            serve_store.watch_every,
            is_from_start=True,
        )

    # a webhook of the command replaces one that a page set
    if serve_store.webhook is not None:
        watcher.set_webhook(serve_store.webhook, with_text=watcher.with_text)

    watcher.start()


def is_for_its_owner(serve_store: ServeStore) -> bool:
    """Return whether only this machine reaches the server, under no other name and behind no proxy."""
    return is_loopback(serve_store.host) and not serve_store.allow_host and not serve_store.behind


class Server(uvicorn.Server):
    """A server that ends cleanly at a signal, without raising it again.

    Args:
        grace: Seconds that requests under way have then.
        stopping: What is done first.
    """

    def __init__(
        self,
        app: ASGIApp,
        grace: int,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        # requests aren't logged, and answers don't name the server's software
        quiet: dict[str, Any] = {
            "log_level": "warning",
            "access_log": False,
            "server_header": False,
        }
        # headers of proxies aren't trusted: the proxy is named at the start
        plain: dict[str, Any] = {
            "proxy_headers": False,
            "ws": "none",
            "lifespan": "off",
        }
        super().__init__(
            uvicorn.Config(
                app,
                timeout_graceful_shutdown=grace,
                **quiet,
                **plain,
            )
        )
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, by the event loop."""

        def stop() -> None:
            self._stopping()
            self.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        yield


def tell_set_aside(site: Site) -> None:
    """Say in one line what the store brings along that this machine didn't make, and that isn't used."""
    links_elsewhere = []
    for link in list_links(site.store, site.seal):
        if link["elsewhere"] and not link["over"]:
            links_elsewhere.append(link)

    others = []
    if links_elsewhere:
        others.append(format_count(len(links_elsewhere), "link of a guest", "links of guests"))
    if site.children.set_aside:
        told = format_count(site.children.set_aside, "result of a command", "results of commands")
        others.append(told)
    if get_watcher(site).offer is not None:
        others.append(f"folders or an address to watch: the page {links.WATCH} asks about them")
    if others:
        why = "another machine or an earlier pollex wrote it"
        click.echo(f"Not used, since {why}: {'; '.join(others)}", err=True)


def start_replay(site: Site, out: Path) -> None:
    """Start to replay the recorded run into a folder; its rubric sets are shown once it has ended."""
    words = "Replaying the recorded run: about a minute"
    arguments = ("demo", "--recorded", "--remedy", "--json", "--out", str(out))

    def show_sets() -> None:
        site.files.update(read_sets(list_demo_rubric_sets(out), site.store.folder))

    site.children.start(words, arguments, back=links.HOME, after=show_sets)


def find_store(here: Path) -> Path:
    """Return the default store, or the only one in a subfolder."""
    usual = here / DEFAULT_STORE_FOLDER
    below = [
        path.parent for path in sorted(here.glob(f"*/{DEFAULT_STORE_FOLDER}/{DATABASE_FILE_NAME}"))
    ]
    # no store here, and one alone below: that one is meant
    if not (usual / DATABASE_FILE_NAME).exists() and len(below) == 1:
        return below[0]
    return usual


def require_safe(serve_store: ServeStore) -> None:
    """Raise WrongUse where others could come in who should not."""
    local = is_loopback(serve_store.host)
    if not local and not serve_store.allow_host:
        raise WrongUse(
            f"{serve_store.host} can be reached from other machines",
            hint="name the host that they will use",
            option={"allow_host": "NAME"},
        )

    if serve_store.no_token and (not local or serve_store.allow_host or serve_store.behind):
        raise WrongUse(
            "without a token it serves this machine only",
            hint="leave it out",
            option="no_token",
        )


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; an error for a used port names a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its name asyncio knows a TCP socket, and sends at once: else an answer's second half waits
    # 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # a server that has just ended doesn't keep its port from the next one
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    try:
        listening.bind((host, port))
    except OSError as failure:
        listening.close()
        if failure.errno != errno.EADDRINUSE:
            raise WrongUse(
                f"can't listen at {host}:{port}: {failure.strerror}",
                hint="give another",
            ) from failure

        hint = f"take the next free one: --port {find_free_port(host, port)}"
        raise WrongUse(f"port {port} is in use", where=host, hint=hint) from failure

    listening.listen(128)
    return listening


def find_free_port(host: str, after: int) -> int:
    """Return a free port after `after`; 0 if the next hundred are used."""
    for port in range(after + 1, min(after + 100, 65536)):
        with socket.socket() as tried:
            # a port that takes a connection is in use
            if tried.connect_ex((host, port)) != 0:
                return port

    return 0


def make_address(serve_store: ServeStore, port: int) -> str:
    """Return the address under which people open it."""
    if serve_store.allow_host:
        host = serve_store.allow_host[0]
    else:
        host = serve_store.host

    if serve_store.behind:
        return serve_store.behind.rstrip("/")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def print_address(
    serve_store: ServeStore,
    address: str,
    folder: Path,
    port: int,
) -> None:
    """Print the address; open it where there is a screen."""
    if serve_store.as_json:
        click.echo(
            json.dumps(
                {
                    "url": address,
                    "store": str(folder),
                    "port": port,
                }
            )
        )
    else:
        click.echo(f"Showing {folder} at\n  {address}\nCtrl-C ends it.")
        # through SSH the browser is on another machine
        if os.environ.get("SSH_CONNECTION"):
            click.echo(
                f"From your own machine: ssh -L {port}:127.0.0.1:{port} HOST, then open the address there."
            )

    if not serve_store.no_open and not os.environ.get("SSH_CONNECTION"):
        webbrowser.open(address)
