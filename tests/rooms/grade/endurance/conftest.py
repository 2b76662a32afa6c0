"""A server that reads, in a process of its own, and a bench to run commands on."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from benches import ATTENTIVE, Bench
from protocol_server import SubprocessServer


@pytest.fixture(scope="module")
def shared_server() -> Iterator[SubprocessServer]:
    with SubprocessServer(script=[ATTENTIVE]) as server:
        yield server


@pytest.fixture
def server(shared_server: SubprocessServer) -> SubprocessServer:
    """Counts from nothing, and attentive."""
    shared_server.script([ATTENTIVE])
    shared_server.reset()
    return shared_server


@pytest.fixture
def bench(server: SubprocessServer, tmp_path: Path) -> Iterator[Bench]:
    """A folder with a rubric set for the server's model; what was started on it has ended before the next test."""
    with closing(Bench(tmp_path, server)) as made:
        yield made
