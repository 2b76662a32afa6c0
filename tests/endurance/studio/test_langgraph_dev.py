"""`langgraph dev` serves the graphs of `langgraph.json`, and calls nobody."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from small_runs import Learnt

ROOT = Path(__file__).parents[3]
NOTHING_SENT = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true", "LANGSMITH_TRACING": "false"}
PATIENCE = 120

pytestmark = [
    pytest.mark.skipif(find_spec("langgraph_api") is None, reason='needs pip install "langgraph-cli[inmem]"'),
    pytest.mark.timeout(600),
]


@pytest.fixture
def server(store: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a server that has started; its working folder is one of its own, with the graphs in it."""
    for name in ("pollex", "langgraph.json"):
        (tmp_path / name).symlink_to(ROOT / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    environment = os.environ | NOTHING_SENT | {"POLLEX_STORE": str(store), "PYTHONPATH": str(ROOT)}
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(PATIENCE):
            assert process.poll() is None, (tmp_path / "server.log").read_text()
            try:
                urlopen(f"{address}/ok", timeout=10).read()
            except (URLError, TimeoutError):
                time.sleep(1)
            else:
                break
        yield address
    finally:
        process.terminate()
        process.wait(30)


def ask(address: str, **body: Any) -> Any:
    headers = {"content-type": "application/json"}
    with urlopen(Request(f"{address}/runs/wait", json.dumps(body).encode(), headers), timeout=500) as reply:
        return json.loads(reply.read())


def test_score_and_learn_are_run_through_the_http_api(server: str, learnt: Learnt) -> None:
    thanks = [{"role": "user", "content": "It crashes."}, {"role": "assistant", "content": "Check the index."}]
    scored = ask(server, assistant_id="score", input={"messages": thanks, "rubrics": str(learnt.rubrics)})
    assert scored["score"]["outcome"] == "scored"
    learned = ask(server, assistant_id="learn", input={"logs": str(learnt.log)})
    assert learned["rubrics"]["rubrics"]
    refused = ask(server, assistant_id="score", input={"messages": thanks, "rubrics": "nowhere.json"})
    assert refused["__error__"]["error"] == "BadRubrics"
    schemas = json.loads(urlopen(f"{server}/assistants/{assistant(server, 'score')}/schemas", timeout=30).read())
    assert schemas["input_schema"]["properties"]["messages"]["description"]


def assistant(address: str, graph: str) -> str:
    """The id of a graph's assistant."""
    body = json.dumps({"graph_id": graph}).encode()
    with urlopen(Request(f"{address}/assistants/search", body, {"content-type": "application/json"})) as reply:
        return str(json.loads(reply.read())[0]["assistant_id"])
