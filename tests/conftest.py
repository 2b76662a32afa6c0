"""What holds for every test: no network beyond this machine, and nothing of the caller's environment."""

import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

for _library in ("OPENBLAS", "OMP"):
    # The suite's processes share the cores, and wait for a second thread of NumPy's or torch's
    # longer than the work takes. It is read when these are first loaded, which is after this line,
    # also in the commands that tests start.
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

for _number in (signal.SIGINT, signal.SIGHUP):
    # What runs in the background or under nohup ignores these, and so would every command that a
    # test interrupts.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

settings.register_profile("suite", max_examples=25, deadline=None)
settings.register_profile("nightly", max_examples=200, deadline=None)  # `make test-all`
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

PRIVATE = ("OPENAI_", "AZURE_OPENAI_", "POLLEX_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


gc.disable()  # of what is imported and collected nothing goes away


def pytest_collection_finish() -> None:
    """Lets the garbage collector pass over the libraries: it would look through them again and again."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_runtest_setup() -> None:
    """Takes out of the environment what a command of an earlier test put there: that tracing is off."""
    for name in [name for name in os.environ if "_TRACING" in name]:
        del os.environ[name]


def pytest_unconfigure() -> None:
    """Gives back what was kept from the collector: DuckDB counts what is left at the end, and complains."""
    gc.unfreeze()


class NetworkRefused(OSError):
    """A test reached for a host that is not this machine."""


def refuse_strangers(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: every library that opens a connection through Python's sockets, also from C, passes here."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path is a Unix socket
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if not stays_here(host):
        raise NetworkRefused(f"a test may only talk to this machine, not to {host!r}")


def stays_here(host: object) -> bool:
    """Whether an address or a name can only be this machine; a name is never looked up to find out."""
    text = host.decode(errors="replace") if isinstance(host, bytes) else host
    if not isinstance(text, str) or text in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(scope="session", autouse=True)
def nothing_from_outside() -> Iterator[None]:
    """Refuses the network, and takes keys, settings and proxies out of the environment; children inherit that."""
    sys.addaudithook(refuse_strangers)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(PRIVATE) or name.lower() in PROXIES:
                patch.delenv(name)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield
