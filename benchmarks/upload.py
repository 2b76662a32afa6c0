"""Files that are brought in the browser: memory while they come, what a broken upload leaves, and hostile requests.

    python benchmarks/upload.py [--size 1000] [--hostile 5000] [--json FILE]

`pollex serve` runs as a process of its own with a new store. A file of so many megabytes is sent to it as a browser
sends it; printed is the most memory that the server had meanwhile beside what it had before, and then what its
process needed that looks at the log. Half an upload is sent and cut off. Then so many hostile requests are sent as
bytes: none may be answered with 500 or leave anything outside the folder of logs.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from hostile_requests import Target, hostile_requests
from small_form import Findings, arguments_of, run

MB = 10**6
MOST_MORE = 200 * MB
LOGS = "logs"
PATIENCE = 120.0
UNENDED = ("too long", "huge", "broken pieces")
"""Ways to announce a body of which less comes."""
ENDS = b"\r\n--b--\r\n"
BEGINS = (
    b'--b\r\nContent-Disposition: form-data; name="files"; filename="log.jsonl"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n"
)


def main() -> int:
    """Print memory and answers."""
    parser = arguments_of(__doc__)
    parser.add_argument("--size", type=int, default=1000, help="megabytes of the file")
    parser.add_argument("--hostile", type=int, default=5000, help="how many hostile requests")
    parser.add_argument("--seed", type=int, default=0)
    return run(parser, measure_all, ["--size", "30", "--hostile", "150"])


@dataclass(frozen=True)
class Served:
    """A server with a store of its own in a folder."""

    process: subprocess.Popen[str]
    port: int
    token: str
    folder: Path

    @property
    def head(self) -> str:
        """The lines that every request has."""
        return f"Host: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"

    def ask(self, request: bytes, *, ends: bool = False) -> bytes:
        """Send bytes, and return what is answered; nothing where the server hangs up.

        Args:
            ends: Whether nothing more can come, though more was announced.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as opened:
            with suppress(OSError):  # it may answer before it has heard all
                opened.sendall(request)
                if ends:
                    opened.shutdown(socket.SHUT_WR)
            with suppress(OSError):
                return b"".join(iter(lambda: opened.recv(1 << 16), b""))
        return b""

    def get(self, path: str) -> bytes:
        """Return the answer for a page."""
        request = f"GET {path} HTTP/1.1\r\n{self.head}Connection: close\r\n\r\n"
        return self.ask(request.encode())

    def logs(self) -> list[Path]:
        """Return all files of logs."""
        brought = self.folder / ".pollex" / LOGS
        return [path for path in brought.rglob("*") if path.is_file()]


def measure_all(given: argparse.Namespace) -> Findings:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
        more, log, seconds = upload_measured(server, given.size * MB)
        looked = look_measured(server, log)
        left = cut_off(server, given.size * MB // 2)
        begun = time.perf_counter()
        answers, outside = attacked(server, given.hostile, given.seed)
        attack = time.perf_counter() - begun
    errors = sum(n for status, n in answers.items() if status.startswith("5"))
    figures = {
        "size": given.size * MB,
        "more memory": more,
        "seconds": seconds,
        "memory of the look": looked,
        "left of a broken upload": left,
        "hostile": given.hostile,
        "answers": dict(answers),
        "seconds of the attack": attack,
    }
    print(f"{given.size} MB in {seconds:.1f} s: the server took {more / MB:.0f} MB more")
    print(f"the process that looked at it took {looked / MB:.0f} MB")
    print(f"an upload that was cut off left {left} files")
    told = ", ".join(f"{status}: {n}" for status, n in sorted(answers.items()))
    print(
        f"{given.hostile} hostile requests in {attack:.0f} s: {told}; outside of the logs they left {outside}"
    )
    return Findings(
        figures=figures,
        bars={
            "the server took at most 200 MB more": more <= MOST_MORE,
            "an upload that was cut off left nothing": left == 0,
            "no hostile request ended in an error of the server": errors == 0,
            "no hostile request left anything outside of the logs": outside == [],
        },
    )


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """A server with a new store."""
    command = [sys.executable, "-m", "pollex", "serve", "--port", "0", "--no-open", "--json"]
    # the store's folder is the only place where anything may appear
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp")}
    for name in ("tmp", "roots"):
        (folder / name).mkdir()
    process = subprocess.Popen(  # noqa: S603
        [*command, "--store", str(folder / ".pollex"), "--root", str(folder / "roots")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert process.stdout is not None
    url = urlsplit(json.loads(process.stdout.readline())["url"])
    token = parse_qs(url.query)["token"][0]
    assert url.port is not None
    try:
        yield Served(process, url.port, token, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def pieces(size: int) -> Iterator[bytes]:
    """Yield conversations as lines, together about so many bytes."""
    number = written = 0
    while written < size:
        rows = bytearray()
        while len(rows) < MB:
            row = {
                "id": f"c{number}",
                "thumbs": ("up", "down")[number % 2],
                "messages": [
                    {"role": "user", "content": f"Where is parcel {number}? " * 20},
                    {"role": "assistant", "content": f"It is on its way, {number}. " * 20},
                ],
            }
            rows += json.dumps(row).encode() + b"\n"
            number += 1
        written += len(rows)
        yield bytes(rows)


def upload_measured(server: Served, size: int) -> tuple[int, str, float]:
    """Send a file; return the memory that it took, the log's id, and the seconds."""
    server.get("/logs")  # which imports what pages need
    before = memory(server.process.pid)
    begun = time.perf_counter()
    with Watch(server.process.pid) as watch:
        answer = sent(server, size)
    seconds = time.perf_counter() - begun
    found = re.search(rb'"log":"([0-9a-f]+)"', answer)
    assert found is not None, answer[-500:]
    return watch.most - before, found[1].decode(), seconds


def sent(server: Served, size: int) -> bytes:
    """Send a file as a browser does, in pieces; return the answer."""
    head = (
        f"POST /api/logs/files HTTP/1.1\r\n{server.head}Accept: application/json\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as opened:
        opened.sendall(head.encode())
        for piece in _framed(size):
            opened.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        opened.sendall(b"0\r\n\r\n")
        return b"".join(iter(lambda: opened.recv(1 << 16), b""))


def _framed(size: int) -> Iterator[bytes]:
    yield BEGINS
    yield from pieces(size)
    yield ENDS


def cut_off(server: Served, size: int) -> int:
    """Send the beginning of a file and hang up; return how many files are left of it."""
    before = set(server.logs())
    head = (
        f"POST /api/logs/files HTTP/1.1\r\n{server.head}"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {2 * size}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as opened:
        opened.sendall(head.encode() + BEGINS)
        for piece in pieces(size):
            opened.sendall(piece)
    until = time.monotonic() + 10
    while set(server.logs()) - before and time.monotonic() < until:
        time.sleep(0.1)
    return len(set(server.logs()) - before)


def look_measured(server: Served, log: str) -> int:
    """Look at a log until it was read; return the memory of the process that did."""
    most = 0
    until = time.monotonic() + PATIENCE * 5
    while time.monotonic() < until:
        answer = server.get(f"/api/logs/{log}")
        children = (memory(pid) for pid in children_of(server.process.pid))
        most = max([most, *children])
        if b'"view":null' not in answer:
            assert b'"conversations":' in answer, answer[-500:]
            return most
    raise AssertionError("the log was not read")


def attacked(server: Served, number: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Send hostile requests; return the answers by status, and files outside of the logs."""
    # those of the attack stay small: what is read again and again is not the large log
    small = re.search(rb'"log":"([0-9a-f]+)"', sent(server, 1000))
    assert small is not None, "a small log is brought"
    target = Target(f"127.0.0.1:{server.port}", server.token, (small[1].decode(),))
    before = outside_of_logs(server)
    answers = Counter[str]()
    for request in hostile_requests(target, number, seed):
        answer = server.ask(request.written(), ends=request.framing in UNENDED)
        status = re.match(rb"HTTP/1\.1 (\d{3})", answer)
        answers[status[1].decode() if status else "hung up"] += 1
    assert server.process.poll() is None, "the server still runs"
    alive = server.get("/api/logs")
    assert b" 200 " in alive[:20], alive[:200]
    return answers, sorted(outside_of_logs(server) - before)


def outside_of_logs(server: Served) -> set[str]:
    """Return the names of files that no request to these pages may write."""
    every = (path for path in server.folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(server.folder)) for path in every}
    kept = (f".pollex/{LOGS}/", ".pollex/commands/", ".pollex/texts/", ".pollex/watched.json")
    return {name for name in names if not name.startswith(kept)}


class Watch:
    """The most memory that a process had while somebody watched."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, memory(self._pid))


def memory(pid: int) -> int:
    """Return the bytes of a process's memory; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text("ascii").split())
    return found


if __name__ == "__main__":
    sys.exit(main())
