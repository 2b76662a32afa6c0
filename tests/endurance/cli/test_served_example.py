"""`pollex serve --example`: its address comes first, and pages are there while the recorded run is replayed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx2


def test_the_example_opens_before_it_has_been_replayed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pollex",
        "serve",
        "--example",
        "--port",
        "0",
        "--no-open",
        "--no-token",
        "--json",
    ]
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        told = json.loads(running.stdout.readline())
        home = httpx2.get(told["url"].removesuffix("/enter"), timeout=10)
        taken = time.monotonic() - begun
        running.terminate()
        assert running.wait(30) == 0
    assert "Replaying the recorded run" in home.text
    assert not (tmp_path / "pollex-example" / "rubrics.json").exists()
    assert taken < 10
