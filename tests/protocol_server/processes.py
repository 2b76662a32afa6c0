"""The server in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from urllib.request import ProxyHandler, Request, build_opener

from protocol_server.replies import Rule

# the second has the planted world
_PLACES = (_TESTS := Path(__file__).parents[1], _TESTS / "endurance")


class SubprocessServer:
    """A server that goes on counting while its clients are killed; see the package."""

    def __init__(self, latency: float = 0.0, script: Sequence[Rule] = ()) -> None:
        self._arguments = ["--latency", str(latency), "--script", json.dumps(list(script))]
        self._opener = build_opener(ProxyHandler({}))

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        port_file = Path(self._folder.name) / "port"
        command = [
            sys.executable,
            "-m",
            "protocol_server",
            "--port-file",
            str(port_file),
            *self._arguments,
        ]
        self._process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _PLACES))}
        )
        until = time.monotonic() + 20
        while not port_file.exists():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError("the protocol server did not start")
            time.sleep(0.02)
        self.port = int(port_file.read_text())
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def counts(self) -> dict[str, Any]:
        """See the package."""
        return self._ask("counts")

    def script(self, rules: Sequence[Rule]) -> None:
        """Replaces the rules."""
        self._ask("script", json.dumps(list(rules)).encode())

    def reset(self) -> None:
        """Sets all counts to nothing."""
        self._ask("reset", b"{}")

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = Request(f"http://127.0.0.1:{self.port}/{path}", data=body)
        with self._opener.open(request, timeout=20) as reply:
            counts: dict[str, Any] = json.load(reply)
        return counts
