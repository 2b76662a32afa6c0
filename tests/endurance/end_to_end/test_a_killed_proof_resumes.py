"""A proof that is killed goes on where it was: the same bytes, and no more calls again than were in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from remedy_log import TARGET, read_table_log, table_rubrics
from small_log import command, run_apart

PROMPT = "You book tables.\nBe short.\n"
CONCURRENCY = 8


def arguments(folder: Path, store: str, out: str) -> list[object]:
    known = [
        "remedy",
        "run",
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--prompt",
        "system.md",
    ]
    asked = ["--target", TARGET, "--edit", "new.md", "--profiles", "profiles.toml", "--store", folder / store]
    return [*known, *asked, "--out", folder / out, "--json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table_rubrics(read_table_log(tmp_path / "log.jsonl", 160)).save(tmp_path / "rubrics.json")
    (tmp_path / "system.md").write_text(PROMPT)
    (tmp_path / "new.md").write_text(f"{PROMPT}Offer another time.\n")
    return tmp_path


MOMENTS = [pytest.param(n / 21, signal.SIGKILL, marks=[pytest.mark.nightly] * (n % 7 != 4)) for n in range(1, 21)]
STOPS = [pytest.param(n / 6, signal.SIGINT, marks=[pytest.mark.nightly] * (n != 3)) for n in range(1, 6)]


@pytest.mark.parametrize(("moment", "stopped_by"), [*MOMENTS, *STOPS])
def test_a_stop_costs_nothing_but_what_was_in_flight(folder: Path, moment: float, stopped_by: signal.Signals) -> None:
    with ProtocolServer(latency=0.05) as server:
        table = f'[assistant]\nmodel = "m"\nbase_url = "{server.url}"\nconcurrency = {CONCURRENCY}\n'
        (folder / "profiles.toml").write_text(table)
        whole = run_apart(*arguments(folder, "a", "whole.json"), cwd=folder)
        assert whole.code in (0, 4), whole.err
        paid = server.counts()["received"]
        started = subprocess.Popen(
            command(*arguments(folder, "b", "again.json")), cwd=folder, stdout=subprocess.DEVNULL, stderr=sys.stderr
        )
        until = paid + moment * paid
        while server.counts()["received"] < until and started.poll() is None:
            time.sleep(0.005)
        os.kill(started.pid, stopped_by)
        started.wait()
        resumed = run_apart(*arguments(folder, "b", "again.json"), "--resume", cwd=folder)
        assert resumed.code == whole.code, resumed.err
        assert (folder / "again.json").read_bytes() == (folder / "whole.json").read_bytes()
        assert json.loads((folder / "again.json").read_text())["registered"]
        assert server.counts()["received"] - 2 * paid <= CONCURRENCY + 6  # the probe is asked again, too
