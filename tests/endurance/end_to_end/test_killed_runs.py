"""`pollex score` killed with signal 9 and resumed: what the server counts was paid twice, and what comes out."""

import random
import shutil
import time
from pathlib import Path

import pytest
from benches import ATTENTIVE, Bench, until
from protocol_server import SubprocessServer

CALLS = 500
KILLS = 2
"""Of one run; with two concurrencies that makes ten moments."""


def unbroken(bench: Bench, folder: Path) -> str:
    """What a run that nobody kills writes, in a store of its own with the same secret."""
    calm = Bench(folder, bench.server)
    calm.log(CALLS // 2)
    (folder / ".pollex").mkdir()
    shutil.copy(bench.folder / ".pollex" / "secret", folder / ".pollex" / "secret")
    assert calm.run(calm.scoring()).code == 0
    return (folder / "scores.jsonl").read_text()


@pytest.mark.parametrize("concurrency", [16, pytest.param(64, marks=pytest.mark.nightly)])
def test_kills_repeat_no_more_calls_than_were_out_and_change_no_score(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, concurrency: int
) -> None:
    bench.log(CALLS // 2)
    bench.server.script([ATTENTIVE | {"latency": 0.05}])
    moments = sorted(random.Random(concurrency).sample(range(1, CALLS), KILLS))
    resume: list[str] = []
    lost = 0
    for moment in moments:
        process = bench.start(bench.scoring("--concurrency", concurrency, *resume))
        bench.wait_for_calls(moment + lost)
        lost = bench.kill(process)
        resume = ["--resume"]
        assert lost <= concurrency * bench.started
    assert bench.run(bench.scoring("--concurrency", concurrency, *resume)).code == 0
    counts = bench.server.counts()
    assert bench.judged - CALLS <= KILLS * concurrency
    assert bench.judged - CALLS == lost  # nothing that was recorded was sent again
    assert counts["most_at_once"] <= concurrency
    bench.server.script([ATTENTIVE])
    assert (bench.folder / "scores.jsonl").read_text() == unbroken(bench, tmp_path_factory.mktemp("calm"))


def test_what_a_failed_test_leaves_running_sends_nothing_to_the_next_ones_server(bench: Bench) -> None:
    bench.log(150)
    bench.server.script([ATTENTIVE | {"latency": 0.05}])
    bench.start(bench.scoring("--concurrency", 4))
    bench.wait_for_calls(8)
    bench.close()
    bench.server.reset()
    time.sleep(0.5)
    assert bench.server.counts()["received"] == 0


@pytest.mark.nightly
def test_killed_before_the_first_answer_all_is_asked_and_nothing_else(bench: Bench) -> None:
    bench.log(20)
    bench.server.script([ATTENTIVE | {"match": "Problem", "latency": 5.0}, ATTENTIVE])
    process = bench.start(bench.scoring("--concurrency", 16))
    bench.wait_for_calls(16)
    process.kill()
    assert bench.recorded() == 0
    bench.server.script([ATTENTIVE])
    assert bench.run(bench.scoring("--resume")).code == 0
    assert bench.judged == 16 + 40


@pytest.mark.nightly  # as store/test_gateway_kills.py, by the command
def test_killed_after_the_last_answer_nothing_is_asked_again(bench: Bench, server: SubprocessServer) -> None:
    bench.log(150)
    process = bench.start(bench.scoring("--concurrency", 64))
    until(lambda: bench.recorded() >= 300)
    process.kill()
    resumed = bench.run(bench.scoring("--resume"))
    assert resumed.code == 0
    assert bench.judged == 300
    assert resumed.json["outcomes"] == {"scored": 150}
    assert len(bench.scores()) == 150


@pytest.mark.nightly  # as the end of a run that was stopped, in test_interrupted_runs.py
def test_a_resumed_run_says_what_the_ledger_knew(bench: Bench) -> None:
    bench.log(30)
    bench.server.script([ATTENTIVE | {"latency": 0.1}])
    process = bench.start(bench.scoring("--concurrency", 4))
    until(lambda: bench.recorded() >= 20)
    process.kill()
    known = bench.recorded()
    usage = bench.run(bench.scoring("--resume")).json["usage"]["judge"]
    assert 0 < usage["known"] <= known
    assert usage["sent"] == 60 - known
