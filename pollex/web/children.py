"""Commands that the browser starts: `pollex …` in processes, one at a time."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from pollex.children import safe_environment
from pollex.web.faults import Fault, NotThere

MOST_WAITING = 8
PATIENCE = 10.0
"""Seconds between asking a command to end, and ending it."""

State = Literal["waiting", "running", "done", "failed", "stopped"]


@dataclass
class Child:
    """A command that was started.

    Attributes:
        words: What it does, for people.
        back: Address of the page that started it.
        remove: Files and folders that it read, and that nobody needs after it.
        folder: Where it works; None for the server's own.
        environment: What it finds there beside the server's own: keys, which no command line shows.
        said: The last lines that it wrote for people.
        after: What is done once it is done.
        told: What it printed as JSON; None before its end, and where it printed none.
    """

    id: str
    words: str
    arguments: tuple[str, ...]
    back: str
    remove: tuple[Path, ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    after: Callable[[], None] | None = None
    state: State = "waiting"
    said: deque[str] = field(default_factory=lambda: deque(maxlen=40))
    told: Any = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    def stop(self) -> None:
        """Ask it to end; what it has done is kept."""
        if self.over:
            return
        self.state = "stopped"
        self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """Send a signal to the command and all that it started."""
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


@dataclass
class Children:
    """All commands that this server started, the last one last."""

    by_id: dict[str, Child] = field(default_factory=dict)
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _begun: list[Future[None]] = field(default_factory=list)

    def start(
        self,
        words: str,
        arguments: Sequence[str],
        *,
        back: str,
        remove: Sequence[Path] = (),
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        after: Callable[[], None] | None = None,
    ) -> Child:
        """Start `pollex` with arguments once those before it have ended.

        Raises:
            Fault: Eight wait already.
        """
        if sum(child.state == "waiting" for child in self.by_id.values()) >= MOST_WAITING:
            raise Fault(
                "eight commands are waiting already", remedy="wait until one of them has ended"
            )
        child = Child(
            secrets.token_hex(4),
            words,
            tuple(arguments),
            back,
            tuple(remove),
            folder,
            environment or {},
            after,
        )
        self.by_id[child.id] = child
        self._begun.append(self._worker.submit(_run, child))
        return child

    def find(self, child_id: str) -> Child:
        """Return a command by its id. Raises NotThere where there is none."""
        if (found := self.by_id.get(child_id)) is None:
            raise NotThere(
                "this server started no such command", remedy="what it did is in the list of runs"
            )
        return found

    def last_of(self, back: str) -> Child | None:
        """Return the last command that a page started."""
        return next((child for child in reversed(self.by_id.values()) if child.back == back), None)

    def close(self) -> None:
        """End all commands: gently first."""
        for child in self.by_id.values():
            child.stop()
        wait(self._begun, PATIENCE)
        for child in self.by_id.values():
            child.signal(signal.SIGTERM)
        self._worker.shutdown()


def _run(child: Child) -> None:
    try:
        if child.state == "waiting":
            _work(child)
    finally:
        for path in child.remove:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _work(child: Child) -> None:
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-P", "-m", "pollex", *child.arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=child.folder,
        env=safe_environment(child.environment),
    ) as process:
        child.process = process
        if child.over:  # it was stopped meanwhile
            child.signal(signal.SIGINT)
        else:
            child.state = "running"
        assert process.stdout is not None
        assert process.stderr is not None
        listening = Thread(target=_listen, args=(child, process.stderr), daemon=True)
        listening.start()
        printed = process.stdout.read()
        listening.join()
        code = process.wait()
    child.told = _json(printed)
    if child.state == "running":
        if code in (0, 3) and child.after is not None:
            child.after()
        child.state = "done" if code in (0, 3) else "failed"


def _listen(child: Child, lines: Iterable[bytes]) -> None:
    for line in lines:
        child.said.append(line.decode("utf-8", "replace").rstrip())


def _json(printed: bytes) -> Any:
    try:
        return json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        return None
