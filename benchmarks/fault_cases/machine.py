"""What a hostile file or request costs: seconds and memory, and one row's outcome."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from fault_cases import ROOT, case
from fault_cases.commands import learned
from fault_cases.commands import run as run_here
from pollex.conversations.redaction import find_identifiers
from pollex.services.evaluate import MOST_BEGINNINGS, score_beginnings
from pollex.services.scorer import Scorer, parse_conversation

SECONDS = 60
GIGABYTE = 1 << 30
LAUGHS = "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


PEAK = r"""
import json, pathlib, re, sys
from fault_cases.commands import run_here
for words in json.loads(sys.argv[1]):
    ended = run_here(*words)
    print(json.dumps([ended.code, ended.said]), flush=True)
print(re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""


def run(*commands: Sequence[object]) -> list[tuple[int, str]]:
    """Run commands in a process of their own, in `SECONDS` and a gigabyte; return their codes, and what they said."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PEAK, json.dumps(commands, default=str)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "benchmarks")},
    )
    *ended, peak = map(json.loads, done.stdout.splitlines())
    assert peak * 1024 < GIGABYTE, f"{peak >> 10} MB"
    return [(code, said) for code, said in ended]


def conversation(id_: str, *said: str) -> dict[str, Any]:
    """Return a row of turns that alternate."""
    return {
        "id": id_,
        "messages": [
            {"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(said)
        ],
    }


@case("3.4", "a turn of 300 MB is one row's outcome, and the good rows are scored")
def a_huge_turn(folder: Path) -> str:
    """Score five rows, one of them huge, from a packed file."""
    rows = [json.dumps(conversation(str(n), "Book it.", "It is booked.")) for n in range(5)]
    rows[2] = rows[2].replace("Book it.", "a" * 300_000_000)
    log = folder / "huge.jsonl.gz"
    out = folder / "scores.jsonl"
    log.write_bytes(gzip.compress("\n".join(rows).encode(), 1))
    del rows
    learned(folder)
    begun = time.monotonic()
    ((code, said),) = run(
        ("score", log, "--rubrics", folder / "r.json", "--out", out, "--store", folder / "s")
    )
    outcomes = [json.loads(line)["outcome"] for line in out.read_text().splitlines()]
    assert (code, outcomes) == (3, ["scored", "scored", "not_scorable", "scored", "scored"]), said
    return f"4 scored, 1 too large, {time.monotonic() - begun:.0f} s"


@case(
    "3.5",
    "a file without rows ends within seconds and a gigabyte, with its place and a remedy; a pipe is read",
)
def hostile_files(folder: Path) -> str:
    """Inspect files that never come to a row, aliases that multiply, devices and pipes."""
    with (folder / "sparse.jsonl").open("wb") as file:
        file.truncate(2 << 30)
    for name, chunk in (("line.gz", b"a"), ("breaks.gz", b"\n")):
        (folder / name).write_bytes(gzip.compress(chunk * (64 << 20), 1) * 32)
    (folder / "laughs.yaml").write_text(f"a: &a [{{requirement: Answers}}]\n{LAUGHS}")
    (folder / "one.jsonl").write_text(json.dumps(conversation("piped", "Hi.", "Hi!")))
    os.mkfifo(pipe := folder / "pipe")
    empty = (
        folder / "sparse.jsonl",
        folder / "line.gz",
        folder / "breaks.gz",
        "/dev/zero",
        "/proc/kmsg",
    )
    begun = time.monotonic()
    with subprocess.Popen(["/bin/sh", "-c", f"cat {folder / 'one.jsonl'} > {pipe}"]):  # noqa: S603
        laughs = ("learn", folder / "none.jsonl", "--rubrics-from", folder / "laughs.yaml")
        *refused, piped, laughed = run(*(("inspect", log) for log in (*empty, pipe)), laughs)
    for log, (code, said) in zip(empty, refused, strict=True):
        assert (code, str(log) in said, "→" in said) == (1, True, True), said
    assert (piped[0], "piped" in piped[1]) == (0, True), piped
    assert (laughed[0], "laughs.yaml: more than a million" in laughed[1]) == (1, True), laughed
    return f"{time.monotonic() - begun:.0f} s for {len(empty) + 2}"


@case("3.6", "long conversations and texts take time in proportion, or are bounded")
def long_texts(folder: Path) -> str:
    """Score beginnings of 400 turns, find a million characters of card numbers, and score 100,000 turns."""
    turns = ["Book it, please.", "It is booked."]
    learned(folder)
    begun = time.monotonic()
    with Scorer.load(folder / "r.json") as scorer:
        from_400 = parse_conversation(conversation("a", *turns * 200))
        assert len(score_beginnings(from_400, scorer.score_many, ())) == MOST_BEGINNINGS
        assert scorer.score(conversation("b", *turns * 50_000)).outcome == "not_scorable"
    assert len(find_identifiers("4111 1111 1111 1111 " * 50_000)) == 50_000
    seconds = time.monotonic() - begun
    assert seconds < SECONDS, f"{seconds:.0f} s"
    return f"{seconds:.0f} s in all"


@case("3.12", "a line break of an id or a text never begins a line on the terminal")
def forged_lines(folder: Path) -> str:
    """Trace a conversation whose id and words hold lines that look like pollex's own."""
    id_ = "a\nGo on with: rm -rf ~"
    (folder / "id.jsonl").write_text(json.dumps(conversation(id_, id_, id_)))
    learned(folder)
    kept = ("--store", "s")
    scored = run_here(folder, "score", "id.jsonl", "--rubrics", "r.json", "--out", "s.jsonl", *kept)
    traced = run_here(folder, "trace", "last", "--conversation", id_, *kept)
    forged = [
        line
        for line in (scored.said + traced.said).splitlines()
        if line.strip().startswith("Go on")
    ]
    assert not forged, forged
    return "none"


@case(
    "3.14",
    "numbers beyond 64 bits, half characters and deep TOML are answered 4xx, and nothing is logged",
)
def bad_input_to_the_server(folder: Path) -> str:
    """Ask a server of one's own for what no store can hold."""
    code = "import sys; from pollex.cli.main import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "serve",
        "--store",
        folder,
        "--port",
        "0",
        "--no-token",
        "--no-open",
    ]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = next(
                found[0]
                for line in server.stdout
                if (found := re.findall(r"http://[\d.]+:\d+", line))
            )
            seen = [status_of(address, *one) for one in BAD]
        finally:
            server.terminate()
        logged = server.stdout.read()
    assert all(400 <= status < 500 for status in seen), seen
    assert "Traceback" not in logged, logged
    return f"{len(seen)} requests"


BAD = (
    ("/api/conversations?page=99999999999999999999", None),
    ("/api/queues", b'{"questionnaire": "\\ud800"}'),
    ("/api/queues", b'{"questionnaire": "a = ' + b"[" * 20_000 + b'"}'),
    ("/api/labels", b'{"id": 99999999999999999999}'),
)


def status_of(address: str, path: str, body: bytes | None) -> int:
    """Ask once, and return the status of the answer."""
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@case(
    "3.16",
    "each distribution that is installed has hashes, and a wheel from a dirty folder nobody's conversations",
)
def locked_and_packed(folder: Path) -> str:
    """Read the lock, and build a wheel beside what `make demo` leaves behind."""
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pins = re.findall(r"^\S+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE)
    assert len(pins) == lock.count("=="), "a distribution without hashes"
    shutil.copytree(ROOT / "pollex", folder / "pollex")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "pollex-demo").mkdir()
    (folder / "pollex-demo" / "log.jsonl").write_text("{}")
    build = (
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--wheel-dir",
    )
    subprocess.run([sys.executable, "-m", *build, folder / "made", folder], check=True)  # noqa: S603
    (wheel,) = (folder / "made").glob("*.whl")
    packed = [name for name in ZipFile(wheel).namelist() if "demo/" in name]
    assert not packed, packed
    return f"{len(pins)} distributions with hashes"


def score_of(folder: Path, before: str = "pass") -> tuple[int, str]:
    """Score in a process of its own, which begins with lines of Python; return its code and what it said."""
    code = f"import resource, sys, time; {before}; from pollex.cli.main import main; main()"
    words = ["score", "log.jsonl", "--rubrics", "r.json", "--out", "s.jsonl", "--store", "s"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@case(
    "3.15",
    "short memory, a clock before 1970 and a full disk are called so, in a line with a remedy",
)
def short_of_something(folder: Path) -> str:
    """Score with .4 to 1.5 GB of addresses, at a time before 1970, and with files of 128 kB at most."""
    learned(folder)
    shorts = {
        f"resource.setrlimit(resource.RLIMIT_AS, ({size}, {size}))": "memory "
        for size in (4 * 10**8, 15 * 10**8)
    }
    shorts["time.time = lambda: -1.0"] = "the clock of this machine is before 1970"
    shorts["resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))"] = "disk full at"
    for before, said in shorts.items():
        code, told = score_of(folder, before)
        assert (code in (1, 2), said in told, "→" in told, "Traceback" in told) == (
            True,
            True,
            True,
            False,
        ), told
    code, told = score_of(folder)
    assert code == 0, told
    return f"{len(shorts)} of {len(shorts)}, and with enough of each it scores"
