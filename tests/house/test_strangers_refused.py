"""The guard of `tests/conftest.py` does refuse."""

import asyncio
import os
import socket
import urllib.error
import urllib.request

import pytest

# Of RFC 5737 and RFC 2606: they would lead nowhere even if the guard were broken.
STRANGE_ADDRESS = "192.0.2.1"
STRANGE_NAME = "stranger.invalid"


def test_a_stranger_is_refused_before_anything_is_sent() -> None:
    with socket.socket() as plain, pytest.raises(OSError, match="only talk to this machine"):
        plain.connect((STRANGE_ADDRESS, 80))


def test_a_name_is_not_even_looked_up() -> None:
    with pytest.raises(OSError, match=STRANGE_NAME):
        socket.getaddrinfo(STRANGE_NAME, 443)


def test_datagrams_are_refused() -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
        pytest.raises(OSError, match="only talk to this machine"),
    ):
        datagrams.sendto(b"?", (STRANGE_ADDRESS, 53))


def test_libraries_are_refused() -> None:
    with pytest.raises(urllib.error.URLError, match="only talk to this machine"):
        urllib.request.urlopen(f"http://{STRANGE_NAME}/", timeout=5)


async def test_the_event_loop_is_refused() -> None:
    with pytest.raises(OSError, match="only talk to this machine"):
        await asyncio.open_connection(STRANGE_ADDRESS, 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_may_be_talked_to(host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1])),
    ):
        assert server.accept()[0].close() is None


def test_keys_settings_and_proxies_of_the_caller_are_gone() -> None:
    private = ("OPENAI_", "POLLEX_", "LANGSMITH_", "LANGCHAIN_")
    assert [
        name for name in os.environ if name.startswith(private) or name.lower().endswith("_proxy")
    ] == []
