"""Commands in processes of their own, on a log, a rubric set and a server whose counts are the truth."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from judged import MODEL, rubric_set, write_log
from protocol_server import SubprocessServer

ATTENTIVE = {"do": "attentive"}
PROBE = 1
"""Calls of the probe where the endpoint can do everything."""

KEY = "sk-test-0123456789abcdefghijklmnop"
PATIENCE = 60.0

FORKS = multiprocessing.get_context("forkserver")
OURS = [
    f"pollex.{name}" for name in ("services.learn", "runs.plan", "usecases.learn", "usecases.score")
]
LOADED_LATE = [
    "duckdb",
    "langchain_openai",
    "langgraph.graph",
    "pandas",
    "scipy.stats",
    "sklearn.cluster",
]
FORKS.set_forkserver_preload(
    [*OURS, *LOADED_LATE, "openai.resources.chat", "httpcore2", "rich.progress"]
)
"""Commands are forked from a process that has imported everything: starting Python anew takes two seconds each time."""


class Ended(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The last line of standard output."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


class Running:
    """A command in a process of its own."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: dict[str, str], number: int
    ) -> None:
        self._out = folder / f"{number}.out"
        self._err = folder / f"{number}.err"
        paths = str(self._out), str(self._err)
        self._process = FORKS.Process(
            target=command, args=(list(arguments), str(folder), environment, *paths)
        )
        self._process.start()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Ends it with signal 9."""
        self._process.kill()
        self._process.join(PATIENCE)
        assert self._process.exitcode == -signal.SIGKILL, self.end()

    def end(self) -> Ended:
        """What it came to, waited for."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        self.leave()
        assert code is not None, f"it does not end: {self._err.read_text()}"
        return Ended(code, self._out.read_text(), self._err.read_text())

    def leave(self) -> None:
        """Ends it if it still runs, whatever became of the test: it would go on sending to the next one's server."""
        self._process.kill()
        self._process.join(PATIENCE)


def command(
    arguments: list[str], folder: str, environment: dict[str, str], out: str, err: str
) -> None:
    """Runs a command in this process, its output in files."""
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv = ["pollex", *arguments]
    from pollex.cli.main import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Bench:
    """See the module.

    Attributes:
        folder: Where commands run; the store is `.pollex` in there.
        started: Commands that went as far as to probe the endpoint.
    """

    def __init__(self, folder: Path, server: SubprocessServer) -> None:
        self.folder = folder
        self.server = server
        self.started = 0
        self._commands: list[Running] = []
        self.rubrics(sat=10, dsat=10)

    def log(self, count: int, **options: Any) -> Path:
        """The log that `score` reads."""
        return write_log(self.folder / "log.jsonl", count, **options)

    def rubrics(self, **options: Any) -> None:
        """Writes the rubric set that `score` reads."""
        rubric_set(self.server.url, **options).save(self.folder / "rubrics.json")

    def scoring(self, *options: object, out: str = "scores.jsonl") -> list[str]:
        """A `score` command."""
        return self.command(
            "score", "log.jsonl", "--rubrics", "rubrics.json", "--out", out, *options
        )

    def learning(self, *options: object, model: str = MODEL) -> list[str]:
        """A `learn` command; what the model says decides alone."""
        alone = ("--model", model, "--set", "without=built-in")
        return self.command("learn", "log.jsonl", *alone, "--out", "learnt.json", *options)

    def command(self, verb: str, *options: object) -> list[str]:
        """A command line."""
        url = ["--base-url", self.server.url]
        return [verb, *map(str, options), *url, "--store", ".pollex", "--json"]

    def start(self, arguments: Sequence[str], **environment: str) -> Running:
        """Starts a command."""
        self.started += 1
        self._commands.append(
            Running(arguments, self.folder, {"OPENAI_API_KEY": KEY, **environment}, self.started)
        )
        return self._commands[-1]

    def run(self, arguments: Sequence[str], **environment: str) -> Ended:
        """Runs a command to its end."""
        return self.start(arguments, **environment).end()

    def kill(self, process: Running) -> int:
        """Kills a command; how many calls the server has got whose answers are not kept."""
        process.kill()
        # What it had sent before is on its way a little longer. The one connection is that which
        # asks.
        until(lambda: self.server.counts()["open"] <= 1)
        return self.judged - self.recorded()

    def close(self) -> None:
        """Ends the commands that a failed test left behind."""
        for one in self._commands:
            one.leave()

    @property
    def judged(self) -> int:
        """Calls that the server got beside probes of endpoints that can do everything."""
        return int(self.server.counts()["received"]) - PROBE * self.started

    def wait_for_calls(self, count: int) -> None:
        """Returns when the server got so many calls."""
        until(lambda: self.judged >= count)

    def scores(self, name: str = "scores.jsonl") -> list[dict[str, Any]]:
        """The rows of a file of scores."""
        return [
            json.loads(line)
            for line in (self.folder / name).read_text(encoding="utf-8").splitlines()
        ]

    def recorded(self) -> int:
        """Replies that are kept."""
        file = self.folder / ".pollex" / "store.sqlite"
        if not file.exists():
            return 0
        with closing(sqlite3.connect(file, timeout=60)) as kept, suppress(sqlite3.OperationalError):
            return int(
                kept.execute("SELECT count(*) FROM calls WHERE reply IS NOT NULL").fetchone()[0]
            )
        return 0  # its tables are being made


def until(true: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Returns when it is true."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


def sums(usage: dict[str, Any]) -> bool:
    """Whether the outcomes of every stage add up to its calls."""
    return all(sum(row["outcomes"].values()) == row["calls"] for row in usage.values())
