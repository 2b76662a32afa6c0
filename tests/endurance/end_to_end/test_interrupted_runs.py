"""Ctrl-C, SIGTERM, a closed terminal, and limits: a run ends in good order and goes on with --resume."""

import fcntl
import os
import signal
import subprocess
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest
from benches import ATTENTIVE, KEY, PROBE, Bench, until
from small_log import command

SLOW = [ATTENTIVE | {"match": "Problem", "latency": 1.0}, ATTENTIVE]


# that each of them ends a run so, cli/test_stops.py shows without a server
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(one, marks=pytest.mark.nightly) for one in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_stopped_run_keeps_what_was_on_its_way_and_repeats_nothing(
    bench: Bench, number: signal.Signals
) -> None:
    bench.log(20)
    bench.server.script(SLOW)
    process = bench.start(bench.scoring("--concurrency", 16))
    bench.wait_for_calls(16)
    process.signal(number)
    began = time.monotonic()
    ended = process.end()
    assert time.monotonic() - began < 25  # what hangs is awaited for 30
    assert ended.code == 130
    assert "Go on with: pollex score log.jsonl" in ended.err
    assert ended.err.rstrip().endswith("--resume")
    # nothing new was sent, and all that was out was kept
    assert bench.judged == bench.recorded() == 16
    bench.server.script([ATTENTIVE])
    resumed = bench.run(bench.scoring("--resume"))
    assert resumed.code == 0
    assert bench.judged == 40
    assert resumed.json["usage"]["judge"]["known"] == 16


def test_a_second_ctrl_c_ends_at_once(bench: Bench) -> None:
    bench.log(20)
    bench.server.script([{"do": "hang", "match": "Problem"}, ATTENTIVE])
    process = bench.start(bench.scoring("--concurrency", 8))
    bench.wait_for_calls(8)
    began = time.monotonic()
    process.signal(signal.SIGINT)
    time.sleep(0.5)
    process.signal(signal.SIGINT)
    assert process.end().code == 130
    assert time.monotonic() - began < 25
    bench.server.script([ATTENTIVE])
    assert bench.run(bench.scoring("--resume")).code == 0
    assert bench.judged == 8 + 40


def test_limits_of_money_and_of_calls_stop_the_run_and_it_goes_on_without(bench: Bench) -> None:
    bench.log(50)
    prices = ("--set", "price=1000:0", "--concurrency", 4)
    whole = bench.run(bench.scoring(*prices, "--dry-run")).json["plan"]["all"]["cost"]
    bench.started = 0
    ended = bench.run(bench.scoring(*prices, "--set", f"max_cost={whole / 4}"))
    assert ended.code == 1
    assert "max_cost" in ended.err
    bought = bench.judged
    assert 10 <= bought <= 50
    ended = bench.run(bench.scoring("--resume", "--max-calls", 30, "--concurrency", 8))
    assert ended.code == 1
    assert "Error: max_calls 30 reached" in ended.err
    assert "Go on with: pollex score" in ended.err
    assert bench.judged == bought + 30
    resumed = bench.run(bench.scoring("--resume", "--concurrency", 4, "--set", "price=1:2"))
    assert resumed.code == 0  # other limits, prices and concurrency change nothing of a result
    assert bench.judged == 100


def test_what_a_score_depends_on_may_not_change_between_kill_and_resume(bench: Bench) -> None:
    bench.log(20)
    assert bench.run(bench.scoring("--max-calls", 5)).code == 1
    sent = bench.server.counts()["received"]
    bench.rubrics(sat=9, dsat=10)
    ended = bench.run(bench.scoring("--resume"))
    assert (ended.code, "was started with other settings (rubrics:" in ended.err) == (1, True), (
        ended.err
    )
    bench.rubrics(sat=10, dsat=10)
    bench.log(21)
    ended = bench.run(bench.scoring("--resume"))
    assert (ended.code, "was started with other settings (data:" in ended.err) == (1, True), (
        ended.err
    )
    bench.log(20)
    # no conversation was sent by any of them
    assert bench.server.counts()["received"] <= sent + 2 * PROBE
    assert bench.run(bench.scoring("--resume")).code == 0


@pytest.mark.nightly  # test_stops.py shows what a resume needs
def test_learning_may_not_be_resumed_with_another_model(bench: Bench) -> None:
    bench.log(24)
    stopped = bench.run(bench.learning("--max-calls", 5))
    assert (stopped.code, "max_calls 5 reached" in stopped.err) == (1, True), stopped.err
    ended = bench.run(bench.learning("--resume", model="another-model"))
    assert ended.code == 1
    for role in ("extractor", "summarizer", "judge"):
        assert role in ended.err.partition("was started with other settings (")[2]
    assert bench.run(bench.learning("--resume", "--concurrency", 3)).code == 0


def test_answers_whose_secret_is_lost_or_changed_are_not_paid_again(bench: Bench) -> None:
    bench.log(6)
    assert bench.run(bench.scoring()).code == 0
    secret = bench.folder / ".pollex" / "secret"
    kept = secret.read_bytes()
    assert secret.stat().st_mode & 0o777 == 0o600
    for damaged in (None, kept[:20]):
        secret.unlink() if damaged is None else secret.write_bytes(damaged)
        for more in ([], ["--dry-run"][: damaged is not None]):
            ended = bench.run(bench.scoring(*more))
            assert ended.code == 1
            assert "the store's secret " in ended.err
            assert "paid answers → put back the file that belongs there" in ended.err
    secret.write_bytes(kept)
    again = bench.run(bench.scoring()).json
    assert (again["usage"]["all"]["sent"], again["known_answers"]) == (0, 6 * 20)


def in_a_window(arguments: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A command in a terminal window of its own; closing the descriptor closes the window."""
    window, inside = os.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=take_terminal,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    os.close(inside)
    return process, window


def test_a_closed_terminal_window_costs_no_call(bench: Bench) -> None:
    bench.log(20)
    bench.server.script(SLOW)
    bench.started += 1
    process, window = in_a_window(bench.scoring("--concurrency", 16), bench.folder)
    os.set_blocking(window, False)

    def asked() -> bool:
        with suppress(BlockingIOError):
            os.read(window, 65536)  # else a slow machine's bars fill what a terminal holds
        return bench.judged >= 16

    until(asked)
    os.close(window)
    process.send_signal(signal.SIGHUP)  # a shell says it once more
    assert process.wait(60) == 130
    assert bench.judged == bench.recorded() == 16


@pytest.mark.parametrize("streams", ["both", pytest.param("stderr", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("interrupted", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_pipe_whose_reader_went_costs_no_call(
    bench: Bench, interrupted: bool, streams: str
) -> None:
    """As `pollex … 2>&1 | tee`: what was to be read goes nowhere, and the run goes on or ends in good order."""
    bench.log(20)
    bench.server.script([ATTENTIVE | {"match": "Problem", "latency": 0.7}, ATTENTIVE])
    bench.started += 1
    reading, writing = os.pipe()
    process = subprocess.Popen(
        command(*bench.scoring("--concurrency", 16)),
        cwd=bench.folder,
        stdout=writing if streams == "both" else subprocess.DEVNULL,
        stderr=writing,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    os.close(writing)
    bench.wait_for_calls(16)
    os.close(reading)
    if interrupted:
        process.send_signal(signal.SIGINT)
    assert process.wait(60) == (130 if interrupted else 0)
    assert bench.judged == bench.recorded() == (16 if interrupted else 40)
    if interrupted:
        assert bench.run(bench.scoring("--resume")).code == 0
        assert bench.judged == 40
