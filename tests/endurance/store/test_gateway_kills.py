"""No answer is lost, and no more is paid twice than was in flight, whenever a run is killed."""

import random
import signal
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from killed import CALLS, finish, kill_after
from protocol_server import SubprocessServer

POINTS = [random.Random(seed).randrange(1, CALLS) for seed in range(10)]
KILLS = [
    pytest.param(received, concurrency, marks=[pytest.mark.nightly] * (place > 1))
    for place, (received, concurrency) in enumerate(zip(POINTS, cycle([16, 64]), strict=False))
]


@pytest.fixture(scope="module")
def shared() -> Iterator[SubprocessServer]:
    with SubprocessServer(latency=0.01) as server:
        yield server


@pytest.fixture
def server(shared: SubprocessServer, unbroken: dict[str, str]) -> SubprocessServer:
    """Counts from nothing."""
    shared.script([])
    shared.reset()
    return shared


@pytest.fixture(scope="module")
def unbroken(shared: SubprocessServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The answers of a run that nobody kills, which has all that it sends and sends nothing when it is run again."""
    folder = tmp_path_factory.mktemp("unbroken")
    answers = finish(shared.url, folder, 64)
    assert len(answers) == CALLS
    assert finish(shared.url, folder, 64) == answers
    assert shared.counts()["received"] == CALLS
    return answers


@pytest.mark.parametrize(("received", "concurrency"), KILLS)
def test_a_killed_run_resumes_and_repeats_no_more_than_was_in_flight(
    received: int,
    concurrency: int,
    server: SubprocessServer,
    unbroken: dict[str, str],
    tmp_path: Path,
) -> None:
    kill_after(server, received, tmp_path, concurrency)
    assert finish(server.url, tmp_path, concurrency) == unbroken
    counts = server.counts()
    assert counts["distinct"] == CALLS
    assert counts["repeated"] <= concurrency


def test_a_run_killed_before_its_first_answer_sends_everything(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.script([{"do": "hang", "count": 16}])
    kill_after(server, 16, tmp_path, 16)
    server.script([])
    assert finish(server.url, tmp_path, 16) == unbroken
    assert server.counts()["repeated"] == 16
    assert server.counts()["paid"] == CALLS


@pytest.mark.nightly
def test_a_resume_that_is_killed_three_times_still_loses_nothing(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    for share in (0.2, 0.4, 0.6, 0.8):
        kill_after(server, int(share * CALLS), tmp_path, 16)
    assert finish(server.url, tmp_path, 16) == unbroken
    assert server.counts()["repeated"] <= 4 * 16


def test_ctrl_c_stops_at_once_stores_what_is_in_flight_and_repeats_nothing(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.script([{"do": "honest", "latency": 0.8}])
    began = time.monotonic()
    kill_after(server, 48, tmp_path, 16, signal.SIGINT)
    received = server.counts()["received"]
    assert received <= 48 + 16
    assert not (tmp_path / "answers.json").exists()
    assert time.monotonic() - began < 100
    server.script([])
    assert finish(server.url, tmp_path, 16) == unbroken
    assert server.counts()["received"] == CALLS
    assert server.counts()["repeated"] == 0
