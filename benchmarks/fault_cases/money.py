"""Money, and what the store says of itself: nothing is paid twice, kept with a secret, or called damaged that isn't."""

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from judged import rubric_set, write_log

from fault_cases import case
from fault_cases.commands import run
from pollex.errors import PollexError, StoreDamaged
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Call, Outcome
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.gateway import Gateway
from pollex.store.ledger import StoreCallLedger
from pollex.store.repair import rebuild_store
from pollex.store.store import Store

ANSWER = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1},
}
Answering = Callable[[str, str], tuple[int, str]]
"""Gives status and body for a prompt and the path that it came to."""


class Served:
    """A server on loopback; its count is the truth.

    Attributes:
        calls: Bodies of what was asked, in order.
    """

    def __init__(self, port: int, calls: list[str]) -> None:
        self.port = port
        self.calls = calls
        self.url = f"http://127.0.0.1:{port}/v1"


def honest(_prompt: str, _path: str) -> tuple[int, str]:
    """Answer."""
    return 200, json.dumps(ANSWER)


@contextmanager
def serving(answering: Answering = honest, seconds: float = 0.0) -> Iterator[Served]:
    """Serve until the end of the block."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            calls.append(asked)
            time.sleep(seconds)
            status, body = answering(json.loads(asked)["messages"][-1]["content"], self.path)
            data = b"" if status == 304 else body.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            """Say nothing of clients that were killed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Served(server.server_port, calls)
        server.shutdown()


async def asked(
    store: Store, endpoint: Endpoint, count: int, **limits: Any
) -> list[Outcome | BaseException]:
    """Return what calls come to."""
    calls = [
        Call(messages=[{"role": "user", "content": f"Question {number}:"}])
        for number in range(count)
    ]
    async with Gateway(endpoint, StoreCallLedger(store), Limits(**limits)) as gateway:
        return await asyncio.gather(*(gateway.ask(call) for call in calls), return_exceptions=True)


def ask(folder: Path, url: str, count: int, **limits: Any) -> list[str]:
    """Return the kinds of what calls through a store come to."""
    with Store.open(folder) as store:
        outcomes = asyncio.run(asked(store, Endpoint("m", url), count, **limits))
    return [
        outcome.kind if isinstance(outcome, Outcome) else type(outcome).__name__
        for outcome in outcomes
    ]


def refusal(work: Callable[[], object]) -> str:
    """Return in which words work is refused; empty where it isn't."""
    try:
        work()
    except PollexError as error:
        return str(error)
    return ""


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow meanwhile, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, heard)


def pollex(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-c", "from pollex.cli.main import main; main()", *arguments]
    return subprocess.run(  # noqa: S603 - our own command
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@case("3.1", "an empty, blank or schemeless place is refused before anything is sent")
def empty_places(folder: Path) -> str:
    """See `case`."""
    (folder / "log.jsonl").write_text("{}\n")
    learn = ("learn", "log.jsonl", "--model", "m")
    for given in (
        ("--base-url", ""),
        ("--base-url= ",),
        ("--base-url", "localhost:9/v1"),
        ("--store", ""),
        ("--out=",),
    ):
        ended = pollex(*learn, *given, folder=folder, OPENAI_API_KEY="k")
        assert ended.returncode == 2, f"{given}: {ended.returncode} {ended.stderr}"
    assert not (folder / ".pollex").exists(), "a store was made"
    return "5 of 5 refused with exit 2"


ONE_OF_FOUR = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fault_cases.money import ask
kinds = ask(Path(sys.argv[2]), sys.argv[3], 500, concurrency=16)
assert kinds == ["completed"] * 500, kinds
"""


@case("3.2", "four processes on a fresh store send 500 calls, and what was out when one was killed")
def four_processes(folder: Path) -> str:
    """See `case`."""
    with serving(seconds=0.02) as server:
        arguments = [
            sys.executable,
            "-c",
            ONE_OF_FOUR,
            str(Path(__file__).parents[1]),
            str(folder / "s"),
            server.url,
        ]
        running = [subprocess.Popen(arguments) for _ in range(4)]  # noqa: S603 - our own
        while len(server.calls) < 250:
            time.sleep(0.002)
        killed = running.pop()
        killed.kill()
        assert [one.wait(120) for one in [killed, *running]][1:] == [0, 0, 0]
        sent = len(server.calls)
        distinct = len(set(server.calls))
    assert (distinct, sent <= 500 + 16) == (500, True), f"{sent} calls for {distinct}"
    return f"{sent} calls for {distinct}"


@case("3.3", "damage is said of what fails its check alone, and a rebuild keeps what people made")
def damage(folder: Path) -> str:
    """See `case`."""
    with Store.open(folder / "s") as store:
        store.transact(
            lambda connection: connection.execute(
                "INSERT INTO chosen VALUES ('q', 'h', 'c', '2026-01-01T00:00:00+00:00')"
            )
        )
        store.transact(
            lambda connection: connection.execute(
                "INSERT INTO annotators (id, name) VALUES ('a', 'Ann')"
            )
        )
        try:
            store.rows("SELECT * FROM chosen WHERE queue = ?", ["\ud800"])
        except StoreDamaged as error:
            raise AssertionError(f"a bad request is called damage: {error}") from error
        except (PollexError, ValueError):
            pass
    told = rebuild_store(folder / "s")
    with Store.open(folder / "s") as store:
        kept = [
            store.value("SELECT count(*) FROM chosen"),
            store.value("SELECT count(*) FROM annotators"),
        ]
    assert kept == [1, 1], told
    return "a chosen conversation and a guest's link are there after the rebuild"


@case("3.7", "two prompts that always get 503 hold nobody while others are answered")
def two_bad_prompts(folder: Path) -> str:
    """See `case`."""

    def answering(prompt: str, _path: str) -> tuple[int, str]:
        return (503, "away") if prompt in {"Question 3:", "Question 17:"} else honest(prompt, _path)

    begun = time.monotonic()
    with serving(answering, seconds=0.05) as server:
        kinds = ask(folder / "s", server.url, 24, concurrency=8)
    took = time.monotonic() - begun
    assert sorted(set(kinds)) == ["completed", "error"], kinds
    assert kinds.count("error") == 2, kinds
    assert took < 40, f"{took:.0f} s"
    return f"{len(server.calls)} calls in {took:.1f} s (by default limits)"


@case("3.9", "a flipped bit of the store's secret is noticed and said")
def flipped_bit(folder: Path) -> str:
    """See `case`."""
    with Store.open(folder / "s") as store:
        before = store.secret
        file = store.folder / "secret"
        content = file.read_bytes()
        flips = range(0, 8 * len(content), 9)
        for place in flips:
            file.write_bytes((int.from_bytes(content) ^ 1 << place).to_bytes(len(content)))
            assert store.secret == before, f"bit {place} changed the secret"
    return f"{len(flips)} of {len(flips)} flips mended"


@case("3.11", "a secret of a base URL that the endpoint echoes is in no file")
def echoed_address(folder: Path) -> str:
    """See `case`."""
    user = "us3r@corp"
    password = "p@ss/w0rd!"  # noqa: S105 - of nobody
    path = "tok_9f8a7b6c5d4e3f2a1b0c"
    query = "quer y/4711"

    def spellings(text: str) -> list[str]:
        whole = "".join(f"%{byte:02x}" for byte in text.encode())
        return [text, whole, whole.upper(), whole.replace("%", "%25"), text.replace("@", "%40")]

    forms = [form for part in (user, password, path, query) for form in spellings(part)]
    echo = " ; ".join(forms)

    def answering(prompt: str, _path: str) -> tuple[int, str]:
        number = int(prompt.split()[1][:-1])
        return (
            (400, 500, 200, 404)[number % 4],
            json.dumps(ANSWER | {"error": {"message": echo}, "echo": echo}),
        )

    with serving(answering) as server:
        url = f"http://us3r%40corp:p%40ss%2fw0rd!@127.0.0.1:{server.port}/{path}/v1?api_key=quer%20y%2F4711"
        ask(folder / "s", url, 8, backoff=0.01)
    kept = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode(
        "utf-8", "replace"
    )
    found = [form for form in forms if form.lower() in kept.lower()]
    assert not found, found
    return "none of 4 secrets in 5 spellings"


@case("3.13", "what is final is sent once, and ends no run in which others are answered")
def final(folder: Path) -> str:
    """See `case`."""
    codes = (304, 400, 401, 403, 404, 405, 410, 418, 422, 451, 501, 505)

    def answering(prompt: str, _path: str) -> tuple[int, str]:
        number = int(prompt.split()[1][:-1])
        return (codes[number // 2], "no") if number % 2 else honest(prompt, _path)

    with serving(answering) as server:
        kinds = ask(folder / "s", server.url, 2 * len(codes), concurrency=1)
    assert kinds == ["completed", "error"] * len(codes), kinds
    assert len(server.calls) == 2 * len(codes), f"{len(server.calls)} calls"
    return f"{len(server.calls)} calls for {2 * len(codes)}"


STOPPED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fault_cases.money import ask
kinds = ask(Path(sys.argv[2]), sys.argv[3], 8, deadline=2.0)
assert kinds == ["completed"] * 8, kinds
"""


@case("3.15", "a process stopped past a deadline loses no answer that was paid")
def stopped(folder: Path) -> str:
    """See `case`."""
    with serving(seconds=0.5) as server:
        arguments = [
            sys.executable,
            "-c",
            STOPPED,
            str(Path(__file__).parents[1]),
            str(folder / "s"),
            server.url,
        ]
        process = subprocess.Popen(arguments)  # noqa: S603 - our own
        while len(server.calls) < 8:
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        time.sleep(4.0)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0
        assert len(server.calls) == 8, f"{len(server.calls)} calls"
    return "8 of 8 answers are kept"


@case("3.15", "what can keep no replies, and an address that is none, are refused before a call")
def refused(folder: Path) -> str:
    """See `case`."""
    (folder / "s").mkdir()
    (folder / "s" / "store.sqlite").symlink_to("/dev/full")
    with serving() as server:
        assert "it is a link" in refusal(lambda: ask(folder / "s", server.url, 64))
        with no_room():
            told = refusal(lambda: ask(folder / "full", server.url, 64))
        assert "disk full" in told, told or "nothing is said"
        assert not server.calls, f"{len(server.calls)} calls"
    for address in ("http://a\0b/v1", "http://\u24d0.example/v1", "http://-\u00fc-.example/v1"):
        assert "no" in refusal(lambda address=address: Endpoint("m", address))  # type: ignore[misc]
    return "0 calls"


@case(
    "3.15",
    "a store that was removed under a run is called so, and a resume at another address is refused",
)
def removed_and_elsewhere(folder: Path) -> str:
    """See `case`."""

    def removing(prompt: str, path: str) -> tuple[int, str]:
        shutil.rmtree(folder / "s", ignore_errors=True)
        return honest(prompt, path)

    with serving(removing) as server:
        told = refusal(lambda: ask(folder / "s", server.url, 4))
    assert "removed while it was in use" in told, told or "nothing is said"
    rubric_set("http://127.0.0.1:9/v1", sat=2, dsat=2).save(folder / "r.json")
    write_log(folder / "log.jsonl", 8)
    words = (
        "score",
        "log.jsonl",
        "--rubrics",
        "r.json",
        "--out",
        "s.jsonl",
        "--store",
        "t",
        "--base-url",
    )
    with serving() as one, serving() as other:
        run(folder, *words, one.url, "--max-calls", "3", code=1)
        before = len(other.calls)
        refused = run(folder, *words, other.url, "--resume", code=1)
        assert "was started with other settings" in refused.err, refused.err
        asked_there = [call for call in other.calls[before:] if "Problem" in call]
        assert not asked_there, f"{len(asked_there)} calls"
    return "both are refused, and no conversation goes to the other address"
