"""Loaded by every Python that has this folder on its path: writes down who is asked for, and refuses."""

import os
import sys
from pathlib import Path

LOG = Path(os.environ["WATCHED_LOG"])
ALLOWED = os.environ.get("WATCHED_ALLOWED", "")
ASKING = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname")


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse the network to Python; a path is a socket on this machine."""
    if event not in ASKING:
        return
    asked = arguments[0] if event.startswith("socket.get") else arguments[1]
    host = asked[0] if isinstance(asked, tuple) else asked
    is_a_file = isinstance(asked, str) and asked.startswith("/")
    if is_a_file or (ALLOWED and host == ALLOWED):
        return
    with LOG.open("a") as log:
        log.write(f"{event} {asked!r} {sys.argv}\n")
    raise ConnectionRefusedError("refused")


sys.addaudithook(watch)
