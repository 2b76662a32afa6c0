"""How much memory `pollex score` takes for a log that is larger than memory should be, with a model as the judge.

    python benchmarks/memory.py [--quick] [--conversations 20000] [--kilobytes 50]

Writes the log, scores it against the tests' loopback server (a process of its own) on one SAT and one DSAT rubric, and
prints the peak resident memory of the scoring process, its time and the size of what it kept.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "endurance")]
from judged import MODEL, rubric_set, write_log  # noqa: E402 - what the tests are made of
from protocol_server import SubprocessServer  # noqa: E402

BYTES_OF_A_WORD = 6.9


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Peak memory of scoring a large log with a model.")
    parser.add_argument("--conversations", type=int, default=20_000)
    parser.add_argument("--kilobytes", type=float, default=50.0)
    parser.add_argument("--quick", action="store_true", help="500 conversations")
    options = parser.parse_args()
    count = 500 if options.quick else options.conversations
    with (
        tempfile.TemporaryDirectory() as name,
        SubprocessServer(script=[{"do": "ignore", "what": ["logprobs"]}]) as server,
    ):
        folder = Path(name)
        log = write_log(folder / "log.jsonl", count, words=int(options.kilobytes * 1000 / 2 / BYTES_OF_A_WORD))
        rubric_set(server.url, sat=1, dsat=1, canary=False).save(folder / "rubrics.json")
        print(f"{count} conversations, {log.stat().st_size / 1e6:.0f} MB")
        arguments = ["score", str(log), "--rubrics", "rubrics.json", "--base-url", server.url, "--json"]
        began = time.monotonic()
        ended = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "pollex", *arguments],
            cwd=folder,
            env={**os.environ, "POLLEX_MODEL": MODEL},
            stdout=subprocess.PIPE,
            check=True,
        )
        seconds = time.monotonic() - began
        told = json.loads(ended.stdout.splitlines()[-1])
        kept = sum(path.stat().st_size for path in (folder / ".pollex").rglob("*"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{told['outcomes']}, {told['usage']['judge']['sent']} calls in {seconds:.0f} s, {kept / 1e6:.0f} MB kept")
    print(f"peak memory {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main()
