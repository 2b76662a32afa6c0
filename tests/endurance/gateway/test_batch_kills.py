"""A command that is killed while it hands in a batch: the next one finds the batch and pays nothing again."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from protocol_server import ProtocolServer

PATIENCE = 60.0


def test_a_kill_between_the_creation_and_its_reply_costs_nothing(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text(
        "\n".join(json.dumps({"question_id": n, "question": f"Why {n}?"}) for n in range(5))
    )
    environment = os.environ | {"OPENAI_API_KEY": "key-of-a-test"}
    with ProtocolServer() as server:
        server.batches.creation = ["no word"]
        place = ["--model", "m", "--base-url", server.url, "--batch"]
        command = [sys.executable, "-m", "pollex", "answer", str(questions), *place]
        killed = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while not server.batches.made and time.monotonic() < until:
            time.sleep(0.02)
        killed.kill()
        killed.wait()
        ended = subprocess.run(
            [*command, "--resume"], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert ended.returncode == 0, ended.stderr.decode()
        assert len(server.batches.made) == 1
        assert sorted(server.batches.paid.values()) == [1] * 5
