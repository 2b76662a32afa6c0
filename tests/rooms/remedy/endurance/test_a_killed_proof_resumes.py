"""A proof that is killed goes on where it was: the same bytes, and no more calls again than were in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from remedy_log import TARGET, read_table_log, table_rubrics
from small_log import command, run_apart

PROMPT = "You book tables.\nBe short.\n"
CONCURRENCY = 8


def arguments(folder: Path, store: str, out: str) -> list[object]:
    known = [
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--prompt",
        "system.md",
    ]
    asked = [
        "--target",
        TARGET,
        "--edit",
        "new.md",
        "--profiles",
        "profiles.toml",
        "--store",
        store,
    ]
    return ["remedy", "run", *known, *asked, "--out", folder / out, "--json"]


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, ProtocolServer, int, int]]:
    """A folder with a proof that nobody stops, the server that it asked, how it ended, and how many calls it took."""
    folder = tmp_path_factory.mktemp("proof")
    table_rubrics(read_table_log(folder / "log.jsonl", 160)).save(folder / "rubrics.json")
    (folder / "system.md").write_text(PROMPT)
    (folder / "new.md").write_text(f"{PROMPT}Offer another time.\n")
    with ProtocolServer(latency=0.05) as server:
        table = (
            f'[assistant]\nmodel = "m"\nbase_url = "{server.url}"\nconcurrency = {CONCURRENCY}\n'
        )
        (folder / "profiles.toml").write_text(table)
        ended = run_apart(*arguments(folder, "a", "whole.json"), cwd=folder)
        assert ended.code in (0, 4), ended.err
        yield folder, server, ended.code, server.counts()["received"]


MOMENTS = [
    pytest.param(n / 21, signal.SIGKILL, marks=[pytest.mark.nightly] * (n != 11))
    for n in range(1, 21)
]
STOPS = [pytest.param(n / 6, signal.SIGINT, marks=pytest.mark.nightly) for n in range(1, 6)]


@pytest.mark.parametrize(("moment", "stopped_by"), [*MOMENTS, *STOPS])
def test_a_stop_costs_nothing_but_what_was_in_flight(
    whole: tuple[Path, ProtocolServer, int, int], moment: float, stopped_by: signal.Signals
) -> None:
    folder, server, code, paid = whole
    store = f"{stopped_by.name}-{moment}"
    # a run writes over no file of another store
    again = folder / f"again-{store}.json"
    known = arguments(folder, store, again.name)
    before = server.counts()["received"]
    started = subprocess.Popen(
        command(*known), cwd=folder, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    while server.counts()["received"] < before + moment * paid and started.poll() is None:
        time.sleep(0.005)
    os.kill(started.pid, stopped_by)
    started.wait()
    resumed = run_apart(*known, "--resume", cwd=folder)
    assert resumed.code == code, resumed.err
    assert again.read_bytes() == (folder / "whole.json").read_bytes()
    assert json.loads(again.read_text())["registered"]
    # the probe is asked again, too
    assert server.counts()["received"] - before - paid <= CONCURRENCY + 6
