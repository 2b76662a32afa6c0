"""Commands that the browser starts: `pollex …` in processes, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

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
    process: asyncio.subprocess.Process | None = None

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
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


@dataclass
class Children:
    """All commands that this server started, the last one last."""

    by_id: dict[str, Child] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

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
            raise Fault("eight commands are waiting already", remedy="wait until one of them has ended")
        child = Child(
            secrets.token_hex(4), words, tuple(arguments), back, tuple(remove), folder, environment or {}, after
        )
        self.by_id[child.id] = child
        task = asyncio.create_task(self._run(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return child

    def find(self, child_id: str) -> Child:
        """Return a command by its id. Raises NotThere where there is none."""
        if (found := self.by_id.get(child_id)) is None:
            raise NotThere("this server started no such command", remedy="what it did is in the list of runs")
        return found

    def last_of(self, back: str) -> Child | None:
        """Return the last command that a page started."""
        return next((child for child in reversed(self.by_id.values()) if child.back == back), None)

    async def close(self) -> None:
        """End all commands: gently first."""
        for child in self.by_id.values():
            child.stop()
        if not self._tasks:
            return
        _, left = await asyncio.wait(self._tasks, timeout=PATIENCE)
        if left:
            for child in self.by_id.values():
                child.signal(signal.SIGTERM)
            await asyncio.wait(left, timeout=PATIENCE)

    async def _run(self, child: Child) -> None:
        try:
            async with self._turn:
                if child.state == "waiting":
                    await self._work(child)
        finally:
            for path in child.remove:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    async def _work(self, child: Child) -> None:
        child.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "pollex", *child.arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=child.folder,
            env={**os.environ, **child.environment},
        )
        child.state = "running"
        assert child.process.stdout is not None
        printed, _ = await asyncio.gather(child.process.stdout.read(), _listen(child))
        code = await child.process.wait()
        child.told = _json(printed)
        if child.state == "running":
            if code in (0, 3) and child.after is not None:
                await asyncio.to_thread(child.after)
            child.state = "done" if code in (0, 3) else "failed"


async def _listen(child: Child) -> None:
    assert child.process is not None
    assert child.process.stderr is not None
    async for line in child.process.stderr:
        child.said.append(line.decode("utf-8", "replace").rstrip())


def _json(printed: bytes) -> Any:
    try:
        return json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        return None
