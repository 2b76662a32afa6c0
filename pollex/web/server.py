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
from pollex.web.guests import list_guest_links, make_guest_finder
from pollex.web.hooks import begin_serving_files
from pollex.web.profiles import read_profiles
from pollex.web.site import (
    Site,
    read_or_make_token,
    read_sets,
    read_sets_beside,
)
from pollex.web.watching import get_watcher

EXAMPLE_FOLDER = Path("pollex-example")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def serve(serve_store: ServeStore) -> int:
    """Serve a store until Ctrl-C or SIGTERM; return the exit code."""
    require_safe(serve_store)
    # an example without rubrics is made by the recorded run, while pages are served already
    replays_example = serve_store.example and not (EXAMPLE_FOLDER / RUBRICS_FILE_NAME).exists()
    if replays_example:
        Recording.bundled().prepare(EXAMPLE_FOLDER / DEFAULT_STORE_FOLDER)

    if serve_store.example:
        serve_store = replace(
            serve_store,
            store=EXAMPLE_FOLDER / DEFAULT_STORE_FOLDER,
            rubrics=list_demo_rubric_sets(EXAMPLE_FOLDER),
        )

    folder = serve_store.store or find_store(Path())
    # the port comes first: if it is in use, nothing has been opened yet
    listening = open_socket(serve_store.host, serve_store.port)
    port = listening.getsockname()[1]
    with Store.open(folder, read_only=serve_store.read_only, goes_on=True) as store:
        site = make_site(serve_store, store, folder)
        take_up_earlier_work(site, serve_store, folder)
        begin_serving_files(
            site,
            {"calibrators": serve_store.calibrators, "studies": serve_store.studies},
        )

        # the address that people open lets them in by its token
        entrance = links.make_address(links.ENTER_PATH, token=site.token)
        address = make_address(serve_store, port) + entrance
        print_address(serve_store, address, folder, port)
        if not serve_store.read_only:
            print_set_aside(site)
        if replays_example:
            start_replay(site, EXAMPLE_FOLDER)
        if not serve_store.read_only:
            remove_draft_copies(folder)

        application = make_application(site, make_access_rules(serve_store, site, port))
        try:
            asyncio.run(Server(application, 5).serve(sockets=[listening]))
        finally:
            close_site(site, serve_store, folder)

    return 0


def make_site(serve_store: ServeStore, store: Store, folder: Path) -> Site:
    """Make what pages show of a store in a folder: its rubric sets, models, and what people may do."""
    token = None if serve_store.no_token else read_or_make_token(folder)
    # sets that were named, or else those beside the store
    if serve_store.rubrics:
        rubric_sets = read_sets(serve_store.rubrics, folder)
        named_sets = tuple(rubric_sets)
    else:
        rubric_sets = read_sets_beside(folder)
        named_sets = ()

    for_owner = is_for_its_owner(serve_store)
    return Site(
        store,
        rubric_sets,
        token,
        serve_store.read_only,
        named_sets,
        profiles=read_profiles(serve_store.profiles),
        here=Path() if for_owner else None,
        local_endpoints=serve_store.allow_local_endpoints or for_owner,
        roots=AllowedRoots(tuple(serve_store.roots), is_open=for_owner),
        max_upload=serve_store.max_upload,
    )


def take_up_earlier_work(site: Site, serve_store: ServeStore, folder: Path) -> None:
    """Take up what an earlier server left: its commands, uploads cut off halfway, folders to look at."""
    if serve_store.read_only:
        return

    site.children.find_again()
    remove_incomplete_logs(folder)
    begin_watching(site, serve_store)


def make_access_rules(serve_store: ServeStore, site: Site, port: int) -> AccessRules:
    """Make the rules by which visitors are let in."""
    # names by which this server is asked; requests to any other are refused
    host_names = {*LOOPBACK_HOSTS, serve_store.host, *serve_store.allow_host}
    return AccessRules.at(
        host_names,
        port,
        site.token,
        site.id,
        serve_store.behind,
        make_guest_finder(site.store),
        serve_store.max_upload,
    )


def close_site(site: Site, serve_store: ServeStore, folder: Path) -> None:
    """End what works for a site, before its store is closed."""
    if site.watcher is not None:
        site.watcher.close()
    # commands write to the store, so that they end before it is closed
    site.children.close()
    site.reader.close()
    if not serve_store.read_only:
        remove_draft_copies(folder)


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


def print_set_aside(site: Site) -> None:
    """Say in one line what the store brings along that this machine didn't make, and that isn't used."""
    links_elsewhere = []
    for link in list_guest_links(site.store, site.seal):
        if link["elsewhere"] and not link["over"]:
            links_elsewhere.append(link)

    others = []
    if links_elsewhere:
        others.append(format_count(len(links_elsewhere), "link of a guest", "links of guests"))
    if site.children.set_aside:
        told = format_count(site.children.set_aside, "result of a command", "results of commands")
        others.append(told)
    if get_watcher(site).offer is not None:
        others.append(
            f"folders or an address to watch: the page {links.WATCH_PATH} asks about them"
        )
    if others:
        why = "another machine or an earlier pollex wrote it"
        click.echo(f"Not used, since {why}: {'; '.join(others)}", err=True)


def start_replay(site: Site, out: Path) -> None:
    """Start to replay the recorded run into a folder; its rubric sets are shown once it has ended."""
    words = "Replaying the recorded run: about a minute"
    arguments = ("demo", "--recorded", "--remedy", "--json", "--out", str(out))

    def show_sets() -> None:
        site.files.update(read_sets(list_demo_rubric_sets(out), site.store.folder))

    site.children.start(words, arguments, back=links.HOME_PATH, after=show_sets)


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
