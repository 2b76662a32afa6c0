"""`pollex serve --score` as a process: it answers on a socket, and ends its work at SIGTERM."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
from small_log import small_log
from small_runs import Learnt


def test_sigterm_ends_the_service_after_the_stream_that_is_under_way(
    learnt: Learnt, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "pollex",
        "serve",
        "--score",
        str(learnt.rubrics),
        "--port",
        "0",
        "--json",
    ]
    environment = os.environ | {
        "POLLEX_TOKEN": "of the test",
        "POLLEX_STORE": str(tmp_path / "store"),
    }
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        told = json.loads(running.stdout.readline())
        assert "token" not in told
        rows = small_log(60, seed=9)[:60]
        metrics = told["url"] + "/metrics"

        headers = {"Authorization": "Bearer of the test", "Content-Type": "application/x-ndjson"}

        def lines():  # type: ignore[no-untyped-def]
            for place, row in enumerate(rows):
                yield json.dumps({"id": str(place), "messages": row["messages"]}).encode() + b"\n"
                if place == 10:
                    # what was sent may still lie in the socket: a stream is under way once a score
                    # is there
                    while (
                        'pollex_scored_total{outcome="scored"}'
                        not in httpx2.get(metrics, headers=headers).text
                    ):
                        time.sleep(0.01)
                    running.send_signal(signal.SIGTERM)

        with httpx2.Client(base_url=told["url"], headers=headers, timeout=100) as client:
            answer = client.post("/v1/score", content=lines())
        found = [json.loads(line) for line in answer.text.splitlines()]
        assert [row["id"] for row in found] == [str(place) for place in range(60)]
        assert {row["outcome"] for row in found} == {"scored"}
        assert running.wait(100) == 0
