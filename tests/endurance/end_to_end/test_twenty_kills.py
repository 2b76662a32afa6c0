"""Twenty kills: `learn`, `score` and `judge` come to what they come to unbroken, and pay once but for what was out."""

import json
import shutil
from typing import Any

import pytest
from benches import ATTENTIVE, Bench

OUT = 8
"""Calls at once."""
VERBS = {
    "learn": (60, 7, ("log.jsonl", "--model", "fake-model", "--set", "without=built-in", "--out", "out.json")),
    "score": (60, 7, ("log.jsonl", "--rubrics", "rubrics.json", "--out", "out.jsonl")),
    "judge": (40, 6, ("log.jsonl", "--question", "Was the task completed?", "--model", "fake-model",
                      "--out", "out.jsonl")),
}  # fmt: skip
"""Conversations, kills and options by verb."""


def result(bench: Bench) -> Any:
    """What a command wrote, but for the run's name and moment."""
    kept = bench.folder / "out.json"
    if not kept.exists():
        return (bench.folder / "out.jsonl").read_text()
    return {
        name: value
        for name, value in json.loads(kept.read_text()).items()
        if name not in ("run", "created")
    }


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", VERBS)
def test_kills_change_no_result_and_repeat_no_call_that_was_kept(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, verb: str
) -> None:
    count, kills, options = VERBS[verb]
    command = bench.command(verb, *options, "--set", f"concurrency={OUT}")
    bench.log(count)
    calm = Bench(tmp_path_factory.mktemp("calm"), bench.server)
    calm.log(count)
    assert calm.run(command).code == 0
    whole = calm.judged
    bench.server.reset()
    bench.server.script([ATTENTIVE | {"latency": 0.03}])
    (bench.folder / ".pollex").mkdir()
    shutil.copy(calm.folder / ".pollex" / "secret", bench.folder / ".pollex" / "secret")
    resume: list[str] = []
    lost = 0
    for number in range(kills):
        process = bench.start([*command, *resume])
        bench.wait_for_calls((number + 1) * whole // (kills + 1) + lost)
        lost = bench.kill(process)
        assert lost <= OUT * (number + 1)
        resume = ["--resume"]
    bench.server.script([ATTENTIVE])
    ended = bench.run([*command, *resume])
    assert ended.code == 0, ended.err
    assert bench.judged - whole == lost
    assert result(bench) == result(calm)
