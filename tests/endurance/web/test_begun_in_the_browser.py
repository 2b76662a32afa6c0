"""What is begun in the browser is planned first, outlives a server that is killed, is stopped, and goes on."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from protocol_server import ProtocolServer
from small_log import small_log, write_log

KEY = "sk-nobody-has-this-one-0123456789"
HTML = {"accept": "text/html"}
SLOW: list[dict[str, Any]] = [{"do": "attentive", "latency": 2.0}]


def serving(folder: Path) -> tuple[subprocess.Popen[str], httpx2.Client]:
    """Start a server in a folder; the process, and a client that brings the token."""
    command = [sys.executable, "-m", "pollex", "serve", "--port", "0", "--no-open", "--json"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    base, _, token = json.loads(server.stdout.readline())["url"].partition("/enter?token=")
    headers = {"Authorization": f"Bearer {token}"}
    return server, httpx2.Client(base_url=base, headers=headers, timeout=60)


def wait_for(told: Callable[[], Any]) -> Any:
    """Ask until there is an answer, for two minutes at most."""
    for _ in range(600):
        if answer := told():
            return answer
        time.sleep(0.2)
    raise AssertionError("nothing came")


def is_over(client: httpx2.Client, child: str) -> bool:
    return client.get(f"/api/children/{child}").json()["state"] not in ("waiting", "running")


@pytest.mark.nightly  # it waits for a slow model, and for three servers
def test_a_plan_comes_first_a_killed_server_finds_the_run_again_and_it_is_stopped_and_goes_on(
    tmp_path: Path,
) -> None:
    write_log(tmp_path / "talks.jsonl", small_log(60))
    with ProtocolServer(script=SLOW) as model:
        typed: dict[str, Any] = {
            "log": ["file:talks.jsonl"],
            "o-model": "m",
            "o-base_url": model.url,
            "key": KEY,
        }
        typed |= {"o-price": "1:2", "o-max_cost": "3"}
        server, client = serving(tmp_path)
        begun = client.post("/api/begin/learn", json=typed).json()
        wait_for(lambda: is_over(client, begun["child"]))
        plan = unescape(client.get(f"/begin/plan/{begun['plan']}").text)
        assert "Likely" in plan, client.get(f"/api/children/{begun['child']}").text
        assert "at a cost of $3" in plan
        assert f"go to m at {model.url}, with a key" in plan
        assert model.counts()["paid"] == 0, "nothing was asked"

        child = client.post(f"/api/begin/plan/{begun['plan']}/start", json={}).json()["child"]
        wait_for(lambda: "/runs/learn-1" in client.get(f"/children/{child}").text)
        record = json.loads((tmp_path / ".pollex/commands" / f"{child}.json").read_text())
        told = subprocess.run(["ps", "-ww", "-o", "args", "-p", record["pid"].strip()],
                              capture_output=True, text=True, check=True).stdout  # fmt: skip
        assert "learn" in told
        assert KEY not in told
        server.send_signal(signal.SIGKILL)
        server.wait()

        server, client = serving(tmp_path)
        page = client.get("/at-work").text
        assert f"/api/children/{child}/stop" in page, "the new server found it"
        client.post(f"/api/children/{child}/stop", json={})
        wait_for(lambda: not (tmp_path / ".pollex/commands" / f"{child}.json").exists())
        (run,) = {run["id"] for run in client.get("/api/runs").json()["runs"]}
        page = client.get(f"/runs/{run}").text
        assert "It was interrupted" in page
        assert "Key for that address" in page, "no key outlives its server"
        (digest,) = re.findall(r'name="confirmed" value="([0-9a-f]+)"', page)
        unconfirmed = client.post(f"/api/runs/{run}/go-on", json={})
        assert unconfirmed.status_code == 409

        answer = client.post(f"/api/runs/{run}/go-on", json={"confirmed": digest, "key": KEY})
        again = answer.json()["child"]
        wait_for(lambda: client.get(f"/api/runs/{run}").json()["status"] == "running")
        assert f"/api/children/{again}/stop" in client.get(f"/runs/{run}").text
        server.terminate()
        assert server.wait(60) == 0
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
    assert [*(tmp_path / ".pollex/commands").iterdir()] == []
    processes = Path("/proc").glob("[0-9]*/environ")  # nothing where there is no such folder
    assert [*filter(has_key, processes)] == [], "a server that ends takes its commands along"


def has_key(environment: Path) -> bool:
    """Tell whether a process still has the key in its environment."""
    try:
        return KEY.encode() in environment.read_bytes()
    except OSError:
        return False
