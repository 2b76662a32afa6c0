"""llama.cpp's own server with a tiny random model: real tokens, real log-probabilities.

Runs where `llama-cpp-python[server]` and `gguf` are installed, or in the Python that LLAMA_PYTHON
names.
"""

import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from benches import Bench
from judged import MODEL

PYTHON = os.environ.get("LLAMA_PYTHON", sys.executable)
NEEDED = "import llama_cpp.server.app, gguf"


class LlamaServer:
    """Where the server is."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    if subprocess.run([PYTHON, "-c", NEEDED], capture_output=True, check=False).returncode:
        pytest.skip(
            "llama-cpp-python[server] and gguf are not installed; LLAMA_PYTHON may name a Python that has them"
        )
    model = tmp_path_factory.mktemp("llama") / "tiny.gguf"
    subprocess.run([PYTHON, str(Path(__file__).with_name("tiny_model.py")), str(model)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--logits_all",
        "true",
        "--n_ctx",
        "8192",
        "--verbose",
        "false",
    ]
    with subprocess.Popen(
        [PYTHON, "-m", "llama_cpp.server", "--model", str(model), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        server = LlamaServer(port)
        try:
            wait_for(server.url, process)
            yield server
        finally:
            process.kill()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Returns when the server answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            urlopen(f"{url}/models", timeout=5).close()
        except URLError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("llama.cpp's server did not start")


@pytest.fixture
def llama_bench(llama: LlamaServer, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, llama)  # type: ignore[arg-type]
    bench.rubrics(sat=2, dsat=1, elicitation="independent", canary=False)
    return bench


def test_doctor_finds_log_probabilities_and_a_way_to_ask_in_a_form(llama_bench: Bench) -> None:
    found = llama_bench.run(llama_bench.command("doctor", "--model", MODEL)).json["endpoint"][
        "capabilities"
    ]
    assert found["logprobs"] > 0
    assert found["tools"] or found["json_object"]
    # this server knows schemas under another name, and refuses OpenAI's with a 500
    assert not found["json_schema"]


def test_a_score_is_made_of_the_models_own_probabilities(llama_bench: Bench) -> None:
    llama_bench.log(2)
    ended = llama_bench.run(llama_bench.scoring("--set", "require=logprobs"))
    assert ended.code == 0, ended.err
    assert ended.json["outcomes"] == {"scored": 2}
    assert ended.json["usage"]["judge"]["sent"] == 6
    first, second = llama_bench.scores()
    for answer in (*first["answers"], *second["answers"]):
        mass = math.fsum(answer["probabilities"])
        assert (answer["source"], 0.5 < mass < 1) == ("logprobs", True)
    assert first["netsat"] != second["netsat"]
