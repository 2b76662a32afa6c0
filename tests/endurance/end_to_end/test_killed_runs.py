"""`pollex score` killed with signal 9 and resumed: what the server counts was paid twice, and what comes out."""

import random
import shutil
import time
from pathlib import Path

import pytest
from benches import ATTENTIVE, Bench

CALLS = 240
KILLS = 2
"""Of one run."""


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
    assert (bench.folder / "scores.jsonl").read_text() == unbroken(
        bench, tmp_path_factory.mktemp("calm")
    )


def test_what_a_failed_test_leaves_running_sends_nothing_to_the_next_ones_server(
    bench: Bench,
) -> None:
    bench.log(150)
    bench.server.script([ATTENTIVE | {"latency": 0.05}])
    bench.start(bench.scoring("--concurrency", 4))
    bench.wait_for_calls(8)
    bench.close()
    bench.server.reset()
    time.sleep(0.5)
    assert bench.server.counts()["received"] == 0
