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

POINTS = [random.Random(seed).randrange(1, CALLS) for seed in range(2)]


@pytest.fixture(scope="module")
def server() -> Iterator[SubprocessServer]:
    with SubprocessServer(latency=0.01) as server:
        yield server


@pytest.fixture(autouse=True)
def _fresh_counts(server: SubprocessServer) -> None:
    server.reset()


@pytest.fixture(scope="module")
def unbroken(server: SubprocessServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    answers = finish(server.url, tmp_path_factory.mktemp("unbroken"), 64)
    assert len(answers) == CALLS
    return answers


@pytest.mark.parametrize(("received", "concurrency"), list(zip(POINTS, cycle([16, 64]), strict=False)))
def test_a_killed_run_resumes_and_repeats_no_more_than_was_in_flight(
    received: int, concurrency: int, server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.reset()
    kill_after(server, received, tmp_path, concurrency)
    assert finish(server.url, tmp_path, concurrency) == unbroken
    counts = server.counts()
    assert counts["distinct"] == CALLS
    assert counts["repeated"] <= concurrency


def test_a_run_killed_before_its_first_answer_sends_everything(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.reset()
    server.script([{"do": "hang", "count": 16}])
    kill_after(server, 16, tmp_path, 16)
    server.script([])
    assert finish(server.url, tmp_path, 16) == unbroken
    assert server.counts()["repeated"] == 16
    assert server.counts()["paid"] == CALLS


def test_a_run_that_has_all_answers_sends_nothing(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    assert finish(server.url, tmp_path, 64) == unbroken
    server.reset()
    assert finish(server.url, tmp_path, 64) == unbroken
    assert server.counts()["received"] == 0


def test_a_resume_that_is_killed_three_times_still_loses_nothing(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.reset()
    for received in (100, 220, 340, 460):
        kill_after(server, received, tmp_path, 16)
    assert finish(server.url, tmp_path, 16) == unbroken
    assert server.counts()["repeated"] <= 4 * 16


def test_ctrl_c_stops_at_once_stores_what_is_in_flight_and_repeats_nothing(
    server: SubprocessServer, unbroken: dict[str, str], tmp_path: Path
) -> None:
    server.reset()
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
